from __future__ import annotations

import datetime as dt
import re
import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from convsessions import operations
from convsessions.admin import figures
from convsessions.admin.chart import nice, stacked
from convsessions.models import ConversationSession, Heartbeat, WriteIntent
from tests.histories import append, deliver_until_settled

from .conftest import ALL, page

pytestmark = pytest.mark.django_db(transaction=True)


def text_of(response):
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


@pytest.fixture
def overview(browser):
    return lambda: browser.get(page("overview"))


def test_an_empty_journal_has_an_overview(overview):
    shown = text_of(overview())

    for said in (
        "Needs a person nothing",
        "Workers no sweep yet",
        "nothing waits",
        "0 writes",
        "Nothing had to be decided.",
    ):
        assert said in shown


def test_what_needs_a_person_is_told_by_its_cause_with_the_list_of_it(overview, browser, duplicated):
    shown = overview()

    assert "1 ambiguous, 0 held 1 duplicated" in text_of(shown)
    (address,) = re.findall(r'href="([^"]*/writeintent/\?verdict=[a-z]+)"', shown.content.decode())
    assert list(browser.get(address).context["cl"].result_list) == [duplicated]


def test_held_writes_are_told_by_their_cause(overview, held):
    assert "0 ambiguous, 1 held 1 the API key was rejected" in text_of(overview())


def test_unknown_outcomes_are_told_with_how_they_were_decided(overview, browser, duplicated):
    token = operations.inspect_write(duplicated.pk).token
    operations.resolve_write(duplicated.pk, "remove_duplicates", reason="so", evidence=token)
    deliver_until_settled(duplicated)

    shown = text_of(overview())

    assert "1 request of unknown outcome What the remote history said:" in shown
    assert "1 duplicated What operators did: 1 remove the extra copies" in shown


def test_writes_stand_in_the_hour_in_which_they_were_recorded(overview, session, sandbox):
    now = timezone.now()
    saved = [deliver_until_settled(append(session, 1)) for _number in range(3)]
    operations.cancel_write(append(session, 1).pk)
    WriteIntent.objects.filter(pk=saved[0].pk).update(created_at=now - dt.timedelta(hours=5))
    WriteIntent.objects.filter(pk=saved[1].pk).update(created_at=now - dt.timedelta(hours=25))

    shown = overview().context

    assert shown["total"] == 3
    table = {label: numbers for label, numbers in shown["table"] if any(numbers)}
    assert table[f"{now - dt.timedelta(hours=5):%H:00}"] == [1, 0, 0, 0, 0]
    assert sum(numbers[0] for numbers in table.values()) == 2
    assert sum(numbers[4] for numbers in table.values()) == 1
    assert len(shown["table"]) == 24
    assert len(shown["chart"].bars) == len([number for numbers in table.values() for number in numbers if number])


def test_too_many_writes_are_counted_from_a_later_hour_on(overview, session, monkeypatch):
    monkeypatch.setattr(figures, "MOST_WRITES", 2)
    for _number in range(4):
        append(session, 1)

    shown = overview()

    assert shown.context["hours"].capped
    assert "as there are too many" in text_of(shown)
    assert shown.context["total"] == 3  # the two newest, and the one at which they begin


def test_the_oldest_that_waits_for_a_worker_is_told_but_not_what_waits_for_a_person(overview, duplicated):
    behind = append(operations.create_session(), 1)
    WriteIntent.objects.filter(pk=duplicated.pk).update(created_at=timezone.now() - dt.timedelta(days=2))
    WriteIntent.objects.filter(pk=behind.pk).update(created_at=timezone.now() - dt.timedelta(minutes=90))

    assert f'<a href="{page("change", behind.pk)}"><time' in overview().content.decode()


def test_times_from_recorded_to_saved_are_told(overview, session, sandbox):
    write = deliver_until_settled(append(session, 1))
    WriteIntent.objects.filter(pk=write.pk).update(created_at=write.settled_at - dt.timedelta(seconds=2.5))

    assert "2.50 s p50 \u00b7 2.50 s p95 of the newest saved write" in text_of(overview())


@pytest.mark.parametrize(("share", "expected"), [(0.5, 10), (0.95, 19), (1.0, 20), (0.0, 1)])
def test_percentiles_are_values_that_occurred(share, expected):
    assert figures.percentile(list(range(1, 21)), share) == expected
    assert figures.percentile([], share) is None


@pytest.mark.parametrize(("minutes", "said"), [(1, "Workers alive"), (10, "Workers late")])
def test_the_sweep_tells_whether_workers_are_alive(overview, session, minutes, said):
    now = timezone.now()
    Heartbeat.objects.create(pk=Heartbeat.SWEEP, beat_at=now - dt.timedelta(minutes=minutes))
    live = {"lease_token": uuid.uuid4(), "lease_expires_at": now + dt.timedelta(minutes=1)}
    ConversationSession.objects.filter(pk=session.pk).update(wake_at=live["lease_expires_at"], **live)
    append(operations.create_session(), 1)

    shown = text_of(overview())

    assert said in shown
    assert "1 session is being delivered 1 session waits for a worker" in shown


@pytest.mark.parametrize(
    ("swept", "delivered", "said"),
    [(10, 1, "Workers alive, but no sweep"), (10, 10, "Workers late"), (1, 10, "Workers nobody delivers")],
)
def test_workers_and_the_sweep_are_told_apart(overview, session, swept, delivered, said):
    now = timezone.now()
    Heartbeat.objects.create(pk=Heartbeat.SWEEP, beat_at=now - dt.timedelta(minutes=swept))
    Heartbeat.objects.create(pk=Heartbeat.DELIVERY, beat_at=now - dt.timedelta(minutes=delivered))
    WriteIntent.objects.filter(pk=append(session, 1).pk).update(created_at=now - dt.timedelta(minutes=5))

    shown = text_of(overview())

    assert said in shown
    assert f"a worker last delivered {delivered} minute" in shown.replace("\xa0", " ")


def test_the_overview_costs_the_same_for_one_write_and_for_three(overview, session):
    overview()
    for number in (1, 2):
        for _number in range(number):
            append(session, 1)
        with CaptureQueriesContext(connection) as captured:
            overview()
        assert len(captured) == 17, [query["sql"] for query in captured]


def test_the_overview_needs_the_permission_to_view_writes(operator):
    assert operator("view_writeintent").get(page("overview")).status_code == 200
    assert operator(*(set(ALL) - {"view_writeintent"})).get(page("overview")).status_code == 403


@pytest.mark.parametrize(
    ("most", "top"), [(0, 4), (4, 4), (5, 5), (6, 10), (11, 20), (99, 100), (101, 200), (1000, 1000)]
)
def test_the_axis_ends_at_a_round_number(most, top):
    assert nice(most) == top


def test_bars_are_stacked_within_the_box():
    chart = stacked([("01:00", {"saved": 3, "refused": 1}), ("02:00", {})], ["saved", "refused"])

    saved, refused = chart.bars
    assert (saved.name, refused.name, refused.text) == ("saved", "refused", "01:00 refused: 1")
    assert saved.y + saved.height == pytest.approx(168)
    assert refused.y + refused.height == pytest.approx(saved.y)
    assert refused.y == pytest.approx(8)
