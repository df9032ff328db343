"""Many sessions in one process: at the same time, fairly, and left behind like any other worker's."""

from __future__ import annotations

import signal

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from convsessions import operations
from convsessions.delivery import ready, threads
from convsessions.delivery.failures import FAILED
from convsessions.journal import choosing
from convsessions.journal.choosing import Turns, reserve
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession
from convsessions.states import WriteState
from tests.histories import append, eventually, messages, remote_texts, texts
from tests.queue.cluster import run_in_a_process, site_environment

pytestmark = pytest.mark.django_db(transaction=True)

SERVE = """
import signal, sys, threading
from convsessions import operations
end = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: end.set())
print(sorted(set(operations.deliver_ready({limit}, asked_to_end=end.is_set).values())), flush=True)
"""


def sessions_with(*counts, owner=None):
    found = []
    for count in counts:
        session = operations.create_session(owner=owner)
        append(session, count, prefix=f"{len(found)}.")
        found.append(session)
    return found


def conversations(sandbox, *, operation="append_items"):
    """The conversation of each such request, in the order of their arrival."""
    return [row["path"].split("/conversations/")[1].split("/")[0] for row in log(sandbox, operation)]


def log(sandbox, operation="append_items"):
    return [row for row in sandbox.requests() if row["operation"] == operation]


def at_work(rows):
    """The most requests that were in flight at a time."""
    moments = [(row["started_at"], 1) for row in rows] + [(row["finished_at"], -1) for row in rows]
    most = present = 0
    for _, change in sorted(moments):
        present += change
        most = max(most, present)
    return most


def all_saved(sessions):
    return not ConversationSession.objects.filter(
        pk__in=[session.pk for session in sessions], writes__is_open=True
    ).exists()


def assert_exact(sandbox, sessions, *counts):
    for index, (session, count) in enumerate(zip(sessions, counts, strict=True)):
        assert remote_texts(sandbox, session) == texts(messages(count, prefix=f"{index}."))


def test_many_sessions_are_delivered_at_the_same_time_up_to_the_limit(sandbox):
    sandbox.settings(latency=0.05)
    sessions = sessions_with(*[45] * 12)

    endings = operations.deliver_ready(4)

    assert endings == {session.pk: "done" for session in sessions}
    assert_exact(sandbox, sessions, *[45] * 12)
    assert 1 < at_work(sandbox.requests()) <= 4


def test_it_ends_when_nothing_is_due(sandbox):
    operations.create_session()
    assert operations.deliver_ready(4) == {}
    assert sandbox.requests() == []


def test_a_long_write_has_its_turns_and_others_are_not_starved(sandbox, monkeypatch):
    monkeypatch.setattr(ready, "TURN_SECONDS", 0.1)
    sandbox.settings(latency=0.02)
    sessions = sessions_with(1000, 3, 3, 3)

    operations.deliver_ready(1, budget=120)

    assert_exact(sandbox, sessions, 1000, 3, 3, 3)
    order = conversations(sandbox)
    long = sessions[0].conversation_id
    last_of_the_others = max(index for index, name in enumerate(order) if name != long)
    assert order[:last_of_the_others].count(long) < 25
    assert order.count(long) == 50


def test_owners_take_turns(sandbox):
    busy, other = (get_user_model().objects.create(username=name) for name in ("busy", "other"))
    many = sessions_with(*[3] * 20, owner=busy)
    few = sessions_with(3, 3, owner=other)

    operations.deliver_ready(1, budget=120)

    for session in (*many, *few):
        session.refresh_from_db()
    order = [name in {session.conversation_id for session in few} for name in conversations(sandbox)]
    assert len(order) == 22
    assert order.index(True) <= 1
    assert sum(order[:4]) == 2


def test_an_owner_who_comes_late_shares_and_does_not_overtake():
    turns = Turns()
    assert turns.choose(3, [(number, "a") for number in range(9)]) == [0, 1, 2]
    assert turns.choose(4, [(3, "a"), (10, "b"), (4, "a"), (11, "b"), (5, "a")]) == [10, 3, 11, 4]
    assert turns.choose(9, [(5, "a")]) == [5]


def test_an_owner_who_comes_behind_the_backlog_of_another_one_is_found(sandbox, monkeypatch):
    monkeypatch.setattr(choosing, "LONGEST_WAITING", 3)
    monkeypatch.setattr(choosing, "JUST_DUE", 2)
    busy, other = (get_user_model().objects.create(username=name) for name in ("busy", "other"))
    backlog = [session.pk for session in sessions_with(*[1] * 8, owner=busy)]
    (late,) = (session.pk for session in sessions_with(1, owner=other))
    turns = Turns()

    with CaptureQueriesContext(connection) as looked:
        assert reserve(2, turns, using=alias()) == [backlog[0], late]
    assert sum("ROW_NUMBER" in query["sql"] for query in looked) == 2
    reserved = [pk for _ in range(4) for pk in reserve(2, turns, using=alias())]
    assert reserved == backlog[1:]
    assert reserve(2, turns, using=alias()) == []


def test_what_is_reserved_is_not_reserved_again_and_comes_back_in_time(sandbox, session):
    append(session, 3)
    assert reserve(5, Turns(), using=alias()) == [session.pk]
    assert reserve(5, Turns(), using=alias()) == []
    # as when the process dies between the two: the sweep finds it once a lease would have run out
    ConversationSession.objects.update(wake_at=timezone.now())
    assert reserve(5, Turns(), using=alias()) == [session.pk]


def test_who_finds_its_choice_taken_takes_others(sandbox):
    """Two processes that look at the same moment choose the same sessions. The later one is not without work for it."""
    sessions = [session.pk for session in sessions_with(*[3] * 5)]
    neighbour = []

    class Beaten(Turns):
        def choose(self, count, candidates):
            chosen = super().choose(count, candidates)
            if not neighbour:
                neighbour.extend(threads.submit(reserve, 2, Turns(), using=alias()).result(timeout=30))
            return chosen

    ours = reserve(2, Beaten(), using=alias())

    assert (neighbour, ours) == (sessions[:2], sessions[2:4])
    neighbour.clear()
    ours = reserve(5, Beaten(), using=alias())
    assert (neighbour, ours) == (sessions[4:], [])


@pytest.mark.skipif(connection.vendor == "sqlite", reason="needs SKIP LOCKED")
def test_a_session_that_somebody_has_locked_is_passed_over(sandbox):
    locked, free = sessions_with(3, 3)
    code = f"""
from convsessions.journal.choosing import Turns, reserve
from convsessions.journal.locking import alias
print([str(pk) for pk in reserve(5, Turns(), using=alias())] == ["{free.pk}"])
"""
    with transaction.atomic():
        ConversationSession.objects.select_for_update().get(pk=locked.pk)
        said, _ = run_in_a_process(code, site_environment(sandbox.base_url, {})).communicate(timeout=60)
    assert said.strip() == "True"


def test_two_processes_serve_the_same_sessions_and_double_nothing(sandbox, quick):
    sandbox.settings(latency=0.05)
    sessions = sessions_with(*[65] * 20)
    environment = site_environment(sandbox.base_url, quick)

    processes = [run_in_a_process(SERVE.format(limit=5), environment) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in processes]

    assert all("done" in one for one in said)  # both had a part in it
    assert_exact(sandbox, sessions, *[65] * 20)
    assert len(log(sandbox)) == 80


def test_what_a_killed_process_had_in_hand_is_delivered_once_its_leases_are_over(sandbox, quick):
    sandbox.settings(latency=0.1)
    sessions = sessions_with(*[65] * 10)
    process = run_in_a_process(SERVE.format(limit=10), site_environment(sandbox.base_url, quick))
    eventually(lambda: len(log(sandbox)) > 12)
    process.kill()
    process.communicate()
    assert ConversationSession.objects.exclude(lease_token=None).count() > 1
    sandbox.settings(latency=0)

    eventually(lambda: operations.deliver_ready(10) is None or all_saved(sessions))

    assert_exact(sandbox, sessions, *[65] * 10)


def test_sigterm_settles_what_is_in_flight_and_leaves_the_rest_to_others_at_once(sandbox, quick):
    sandbox.settings(latency=0.1)
    sessions = sessions_with(*[200] * 6)
    process = run_in_a_process(SERVE.format(limit=6), site_environment(sandbox.base_url, quick))
    eventually(lambda: len(log(sandbox)) > 8)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)

    assert (process.returncode, said.strip()) == (0, "['done']")
    assert all(row["finished_at"] for row in sandbox.requests())
    assert len(log(sandbox)) < 60
    assert not ConversationSession.objects.exclude(lease_token=None).exists()
    sandbox.settings(latency=0)
    operations.deliver_ready(6)
    assert_exact(sandbox, sessions, *[200] * 6)
    assert len(log(sandbox)) == 60


def test_the_loop_and_its_connections_are_kept_until_something_breaks_in(sandbox):
    sessions = sessions_with(3, 3)
    with pytest.raises(SystemExit):  # a task timeout of django-q2
        operations.deliver_ready(1, first=[sessions[0].pk], asked_to_end=lambda: exit(3))
    operations.deliver_ready(4, first=[sessions[1].pk])
    assert remote_texts(sandbox, sessions[1]) == texts(messages(3, prefix="1."))


def test_a_session_that_fails_does_not_keep_the_others_waiting(sandbox, quick, caplog):
    broken, sound = sessions_with(3, 3)
    ConversationSession.objects.filter(pk=broken.pk).update(conversation_id="conv_1", tail_anchor="")
    broken.writes.get().chunks.update(payload="not JSON")

    assert operations.deliver_ready(4) == {broken.pk: FAILED, sound.pk: "done"}
    said = f"delivery_failed session={broken.pk} error=JSONDecodeError"
    assert said in [record.getMessage() for record in caplog.records]
    assert not any(record.exc_info for record in caplog.records)  # its text may quote what could not be read


def test_a_doorbell_serves_what_else_is_due_and_rings_for_what_is_left(sandbox, quick, monkeypatch):
    rung = []
    monkeypatch.setattr("convsessions.enqueue.dispatch_nowhere", rung.append)
    first, second = sessions_with(3, 3)
    rung.clear()
    operations.answer_doorbell(first.pk)
    assert all_saved([first, second])
    assert rung == []

    quick.update(DELIVERY_BUDGET=0.05, READY_SESSIONS=1)
    sandbox.settings(latency=0.1)
    (long,) = sessions_with(200)
    rung.clear()
    operations.answer_doorbell(long.pk)
    assert not all_saved([long])
    assert rung == [str(long.pk)]


def test_it_is_refused_inside_a_transaction(sandbox, session):
    append(session, 3)
    with transaction.atomic(), pytest.raises(RuntimeError):
        operations.deliver_ready(4)
    assert sandbox.requests() == []


def test_a_session_that_is_gone_is_nothing_to_do(sandbox, session):
    session.delete()
    gone = operations.create_session()
    ConversationSession.objects.filter(pk=gone.pk).delete()
    assert operations.deliver_ready(4, first=[gone.pk]) == {gone.pk: "nothing_to_do"}


def test_a_write_that_waits_gives_its_place_to_others(sandbox, quick):
    """A rate limit of one session holds up nobody, though there is one place only."""
    quick["RETRY_BACKOFF"] = (30.0, 60.0)
    held, free = sessions_with(3, 3)
    sandbox.fault("rate_limited", operation="append_items", retry_after="30")

    operations.deliver_ready(1)

    assert [held.writes.get().state, free.writes.get().state] == [WriteState.SENDING, WriteState.SAVED]


def test_a_write_that_waits_for_a_moment_is_taken_up_again_within_the_budget(sandbox, quick, monkeypatch):
    monkeypatch.setattr(ready, "TURN_SECONDS", 0.01)  # it is longer than a turn has patience for
    quick["RETRY_BACKOFF"] = (0.5, 1.0)
    (held,) = sessions_with(3)
    sandbox.fault("rate_limited", operation="append_items", retry_after="1")

    operations.deliver_ready(1)

    assert held.writes.get().state == WriteState.SAVED
