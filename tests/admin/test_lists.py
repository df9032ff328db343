from __future__ import annotations

import uuid

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext

from convsessions import operations
from convsessions.admin import display, pages
from convsessions.models import RequestAttempt
from tests.histories import append, messages

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
    ("counts", "squares"),
    [
        ({"saved": 1, "ambiguous": 1, "pending": 1}, ["saved", "ambiguous", "pending"]),
        ({"saved": 499, "pending": 1}, ["saved"] * 19 + ["pending"]),
        ({"saved": 250, "refused": 1, "cancelled": 249}, ["saved"] * 10 + ["refused"] + ["cancelled"] * 9),
        ({}, []),
    ],
)
def test_a_square_that_stands_for_many_chunks_shows_the_most_urgent(counts, squares):
    assert display.squares_of(counts) == squares if counts else display.strip(counts) == ""


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


def test_a_filter_value_that_does_not_exist_is_passed_over(browser, many):
    writes = many(1)

    assert rows_of(browser.get(f"{page('changelist')}?state=nonsense&attention=maybe")) == writes


def test_search_finds_a_write_by_every_id_that_a_log_or_a_ticket_may_name(browser, duplicated, session, many):
    many(2)
    request = RequestAttempt.objects.filter(write=duplicated).exclude(request_id="").first()

    for term in (duplicated.pk, duplicated.pk.hex, session.pk, session.conversation_id, request.request_id):
        assert rows_of(browser.get(page("changelist"), {"q": f" {term} "})) == [duplicated], term
    assert rows_of(browser.get(page("changelist"), {"q": "nothing like that"})) == []


def test_search_finds_sessions_by_a_part_of_their_key(browser, many):
    writes = many(3)

    found = rows_of(browser.get(page("changelist", model="conversationsession"), {"q": "ey-1"}))
    assert found == [writes[1].session]
    assert rows_of(browser.get(page("changelist"), {"q": "ey-1"})) == [writes[1]]


def test_sessions_that_need_attention_can_be_filtered(browser, duplicated, many):
    many(2)

    found = rows_of(browser.get(f"{page('changelist', model='conversationsession')}?attention=yes"))
    assert found == [duplicated.session]


# -- cost --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "queries"), [("writeintent", 8), ("conversationsession", 7)])
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

    assert [query for query in captured if "payload" in query["sql"] and "view_payload" not in query["sql"]] == []
    assert [query for query in captured if "popped" in query["sql"]] == []


def test_a_long_list_is_counted_only_so_far(browser, many, monkeypatch):
    monkeypatch.setattr(pages, "MOST_COUNTED", 2)
    many(3)

    shown = browser.get(page("changelist"))

    assert shown.context["cl"].result_count == 2
    assert "Only the first 2 are counted and listed" in shown.content.decode()
