from __future__ import annotations

import datetime as dt
import uuid

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from convsessions import operations
from convsessions.admin import display, pages
from convsessions.models import RequestAttempt, WriteIntent
from tests.histories import append, deliver_until_settled, messages

from .conftest import ITEMS, page

pytestmark = pytest.mark.django_db(transaction=True)


def rows_of(response):
    return list(response.context["cl"].result_list)


@pytest.fixture
def many(browser):
    """`many(3)`: so many sessions, each with an owner and a write that nobody has begun."""

    def make(number):
        owner = get_user_model().objects.create_user(f"owner-{uuid.uuid4()}")
        sessions = [operations.create_session(owner=owner, key=f"key-{index}") for index in range(number)]
        return [operations.append_items(session.pk, messages(ITEMS), author=owner) for session in sessions]

    return make


# -- what a list shows -------------------------------------------------------------------------------------------


def test_the_list_of_writes_says_state_verdict_chunks_progress_and_how_to_repair(browser, duplicated):
    shown = browser.get(page("changelist")).content.decode()

    assert "ambiguous</span> duplicated: stored more than once" in shown
    assert 'role="img" aria-label="3 chunks: 1 saved, 1 ambiguous, 1 pending"' in shown
    assert '<i class="cs-saved"></i><i class="cs-ambiguous"></i><i class="cs-pending"></i>' in shown
    assert "3 of 7 items" in shown
    assert f'href="{page("resolve", duplicated.pk)}"' in shown
    assert '<a href="?attention=yes">1 write needs attention</a>' in shown


def test_the_list_of_sessions_says_which_is_stopped_and_how_much_is_open(browser, duplicated, session):
    append(session, 1)

    shown = browser.get(page("changelist", model="conversationsession")).content.decode()

    assert 'class="cs-badge cs-ambiguous">ambiguous</span>' in shown
    assert '<td class="field-open_writes">2</td>' in shown
    assert session.conversation_id in shown


@pytest.mark.parametrize(
    ("runs", "squares"),
    [
        ([("saved", 1), ("ambiguous", 1), ("pending", 1)], ["saved", "ambiguous", "pending"]),
        ([("saved", 499), ("pending", 1)], ["saved"] * 19 + ["pending"]),
        ([("saved", 250), ("refused", 1), ("cancelled", 249)], ["saved"] * 10 + ["refused"] + ["cancelled"] * 9),
        ([], []),
    ],
)
def test_a_square_that_stands_for_many_chunks_shows_the_most_urgent(runs, squares):
    states = [state for state, number in runs for _ in range(number)]
    assert display.squares_of(states) == squares if states else display.strip(states) == ""


def test_what_a_write_left_out_is_shown_where_it_stands(browser, sandbox, session):
    sandbox.fault("error_before", operation="append_items", status=400, code="invalid_value", param="items[1].content")
    write = deliver_until_settled(operations.append_items(session.pk, messages(ITEMS), on_refusal="skip"))
    rows = list(write.chunks.order_by("first_item").values_list("state", flat=True))
    refused = rows.index("refused")
    assert 0 < refused < len(rows) - 1
    squares = "".join(f'<i class="cs-{state}"></i>' for state in rows)

    assert squares in browser.get(page("changelist")).content.decode()
    assert squares in browser.get(page("change", write.pk)).content.decode()


# -- filters and search ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query", ["attention=yes", "state=ambiguous", "verdict=duplicated", "kind__exact=append&state=ambiguous"]
)
def test_filters_find_the_ambiguous_write_among_others(browser, duplicated, many, query):
    many(2)

    assert rows_of(browser.get(f"{page('changelist')}?{query}")) == [duplicated]


@pytest.mark.parametrize("query", ["attention=yes", "held=bad_key", "state=pending&held=bad_key"])
def test_filters_find_the_held_write_among_others(browser, held, many, query):
    many(2)
    query = query.replace("state=pending", f"state={held.state}")

    assert rows_of(browser.get(f"{page('changelist')}?{query}")) == [held]


@pytest.mark.parametrize(
    ("value", "ages"),
    [("hour", [0, 30]), ("day", [0, 30, 120]), ("open_10m", [30, 120, 3000]), ("open_hour", [120, 3000])],
)
def test_writes_are_filtered_by_their_age(browser, many, value, ages):
    writes = dict(zip([0, 30, 120, 3000], many(4), strict=True))
    for minutes, write in writes.items():
        made = timezone.now() - dt.timedelta(minutes=minutes)
        WriteIntent.objects.filter(pk=write.pk).update(created_at=made)
    settled = many(1)[0]
    operations.cancel_write(settled.pk)

    found = rows_of(browser.get(page("changelist"), {"age": value}))

    expected = {writes[age] for age in ages} | ({settled} if value in {"hour", "day"} else set())
    assert set(found) == expected


def test_dates_are_offered_down_to_the_day_without_reading_the_rows(browser, many):
    old, new = many(2)
    WriteIntent.objects.filter(pk=old.pk).update(created_at=dt.datetime(2024, 11, 5, 12, tzinfo=dt.UTC))
    years = browser.get(page("changelist")).context["cl"].calendar
    assert years.back is None
    assert years.choices[-1] == ("2024", "?created_at__year=2024")

    months = browser.get(page("changelist") + "?created_at__year=2024")
    assert months.context["cl"].calendar.choices[0] == (
        "November 2024",
        "?created_at__month=11&created_at__year=2024",
    )
    days = browser.get(page("changelist") + "?created_at__year=2024&created_at__month=11").context["cl"].calendar
    assert len(days.choices) == 30
    of_day = browser.get(page("changelist") + days.choices[4][1])
    assert rows_of(of_day) == [old]
    assert of_day.context["cl"].calendar.choices == []
    assert rows_of(browser.get(page("changelist") + f"?created_at__year={new.created_at.year}")) == [new]


def test_a_date_that_does_not_exist_is_no_error(browser, many):
    for query in ("created_at__year=nonsense", "created_at__year=2024&created_at__month=13", "created_at__day=3"):
        assert browser.get(f"{page('changelist')}?{query}", follow=True).status_code == 200, query


def test_a_filter_value_that_does_not_exist_is_passed_over(browser, many):
    writes = many(1)

    assert rows_of(browser.get(f"{page('changelist')}?state=nonsense&attention=maybe")) == writes


def test_search_finds_a_write_by_every_id_that_a_log_or_a_ticket_may_name(browser, duplicated, session, many):
    many(2)
    request = RequestAttempt.objects.filter(write=duplicated).exclude(request_id="").first()

    for term in (duplicated.pk, duplicated.pk.hex, session.pk, session.conversation_id, request.request_id):
        assert rows_of(browser.get(page("changelist"), {"q": f" {term} "})) == [duplicated], term
    assert rows_of(browser.get(page("changelist"), {"q": "nothing like that"})) == []


def test_search_finds_writes_and_sessions_by_a_remote_item_in_full(browser, duplicated, session, many, sandbox):
    many(2)
    item = sandbox.items(session.conversation_id)[1]["id"]

    for model, row in (("writeintent", duplicated), ("conversationsession", session)):
        assert rows_of(browser.get(page("changelist", model=model), {"q": item})) == [row]
        assert rows_of(browser.get(page("changelist", model=model), {"q": item[:-1]})) == []


def test_search_finds_what_was_popped(browser, session, sandbox):
    deliver_until_settled(append(session, 1))
    session.refresh_from_db()
    item = sandbox.items(session.conversation_id)[0]["id"]
    pop = deliver_until_settled(operations.pop_item(session.pk))

    assert pop in rows_of(browser.get(page("changelist"), {"q": item}))


def test_a_session_is_found_by_the_ids_of_its_writes(browser, duplicated, session, many):
    many(2)
    request = RequestAttempt.objects.filter(write=duplicated).exclude(request_id="").first()

    for term in (duplicated.pk, request.request_id, session.pk, session.conversation_id):
        assert rows_of(browser.get(page("changelist", model="conversationsession"), {"q": term})) == [session], term


def test_a_whole_key_finds_its_session_alone(browser):
    for key in ("order-1", "order-12"):
        operations.append_items(operations.create_session(key=key).pk, messages(1))

    (found,) = rows_of(browser.get(page("changelist"), {"q": "order-1"}))
    assert found.session.key == "order-1"
    assert len(rows_of(browser.get(page("changelist"), {"q": "order-"}))) == 2


def test_search_finds_sessions_by_a_part_of_their_key(browser, many):
    writes = many(3)

    found = rows_of(browser.get(page("changelist", model="conversationsession"), {"q": "ey-1"}))
    assert found == [writes[1].session]
    assert rows_of(browser.get(page("changelist"), {"q": "ey-1"})) == [writes[1]]


def test_search_finds_the_sessions_and_writes_of_an_owner_by_the_whole_name(browser, many):
    writes, _others = many(2), many(1)
    name = writes[0].author.username

    for model, rows in (("writeintent", writes), ("conversationsession", [write.session for write in writes])):
        assert set(rows_of(browser.get(page("changelist", model=model), {"q": name}))) == set(rows)
        assert rows_of(browser.get(page("changelist", model=model), {"q": name[:-1]})) == []


def test_sessions_that_need_attention_can_be_filtered(browser, duplicated, many):
    many(2)

    found = rows_of(browser.get(f"{page('changelist', model='conversationsession')}?attention=yes"))
    assert found == [duplicated.session]


# -- cost --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "queries"), [("writeintent", 9), ("conversationsession", 8)])
def test_lists_cost_as_many_queries_for_three_rows_as_for_one(browser, many, model, queries):
    address = page("changelist", model=model)
    browser.get(address)
    for number in (1, 2):
        many(number)
        with CaptureQueriesContext(
            connection,
        ) as captured:
            browser.get(address)
        assert len(captured) == queries, [query["sql"] for query in captured]


def test_lists_read_no_content(browser, duplicated):
    with CaptureQueriesContext(connection) as captured:
        browser.get(page("changelist"))
        browser.get(page("changelist", model="conversationsession"))
        browser.get(page("change", duplicated.pk))

    columns = [connection.ops.quote_name(name) for name in ("payload", "original", "popped")]
    assert [query for query in captured if any(f".{column}" in query["sql"] for column in columns)] == []


def test_a_long_list_is_counted_only_so_far(browser, many, monkeypatch):
    monkeypatch.setattr(pages, "MOST_COUNTED", 2)
    many(3)

    shown = browser.get(page("changelist"))

    assert shown.context["cl"].result_count == 2
    assert "Only the first 2 are counted and listed" in shown.content.decode()
