"""Workers that die at every point of the protocol: real processes, real SIGKILL, real recovery.

Each session is delivered by a forked worker that kills itself just before, or just after, its k-th SQL statement; k
runs over all statements of a delivery. The last statement of a turn stands right before its COMMIT, and the first one
of the next turn right after it, so that every transaction is broken at its beginning, in its middle and at its end.
"""

from __future__ import annotations

import os
import signal
import sys

import pytest
from django.db import connection, connections

from convsessions import operations
from convsessions.delivery import protocol
from convsessions.delivery.drivers import perform
from convsessions.journal.locking import alias
from convsessions.models import RequestAttempt
from convsessions.remote import clients
from convsessions.remote.calls import AppendItems, CreateConversation, ListItems, Pause
from convsessions.states import WriteState
from tests.histories import append, append_requests, deliver_until_settled, eventually, messages, remote_texts, texts

pytestmark = pytest.mark.django_db(transaction=True)

ITEMS = 25
EXPECTED = texts(messages(ITEMS))
SURVIVED = 0


def in_a_forked_worker(work) -> int:
    """Run `work` in a child process with connections of its own; returns its exit status as os.waitpid gives it."""
    connections.close_all()  # a connection shared over a fork would be closed by both
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = SURVIVED
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1]


class DieAt:
    """Counts SQL statements and kills the process at number `k`."""

    def __init__(self, k: int, *, after: bool) -> None:
        self.k, self.after, self.count = k, after, 0

    def __call__(self, execute, sql, params, many, context):
        self.count += 1
        if self.count == self.k and not self.after:
            self.die()
        result = execute(sql, params, many, context)
        if self.count == self.k and self.after:
            self.die()
        return result

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class InterruptAt(DieAt):
    """Raises instead, at any statement, what django-q2's task timeout and Ctrl-C raise."""

    def __init__(self, k: int, error: type[BaseException]) -> None:
        super().__init__(k, after=True)
        self.error = error

    def die(self) -> None:
        raise self.error


def killed_deliveries(after: bool) -> list:
    """One write for every statement of a delivery, each left behind by a worker killed at that statement."""
    writes = []
    for k in range(1, 200):
        session = operations.create_session()
        write = append(session, ITEMS)
        writes.append(write)

        def work(session=session, k=k):
            with connection.execute_wrapper(DieAt(k, after=after)):
                operations.deliver(session.pk)

        status = in_a_forked_worker(work)
        if status == SURVIVED:
            return writes
        assert os.WTERMSIG(status) == signal.SIGKILL
    raise AssertionError("a delivery of two chunks takes no 200 statements")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_worker_killed_at_any_statement_loses_and_doubles_nothing(sandbox, transactional_db, after, quick):
    quick["REQUEST_TIMEOUT"], quick["LEASE_GRACE"], quick["SETTLE_SECONDS"] = 0.6, 0.3, 0.1
    writes = killed_deliveries(after)

    assert len(writes) > 20  # the deaths really were spread over the protocol
    for write in writes:
        settled = deliver_until_settled(write)
        assert settled.state == WriteState.SAVED
        assert remote_texts(sandbox, settled.session) == EXPECTED


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_an_interrupt_at_any_statement_leaves_the_journal_as_a_crash_would(sandbox, transactional_db, error, quick):
    quick["REQUEST_TIMEOUT"], quick["LEASE_GRACE"], quick["SETTLE_SECONDS"] = 0.6, 0.3, 0.1
    writes = []
    for k in range(1, 200):
        write = append(operations.create_session(), ITEMS)
        writes.append(write)
        try:
            with connection.execute_wrapper(InterruptAt(k, error)):
                operations.deliver(write.session_id)
        except error:
            connections.close_all()  # the process ends with its connections
            continue
        break

    assert len(writes) > 20
    for write in writes:
        settled = deliver_until_settled(write)
        assert settled.state == WriteState.SAVED
        assert remote_texts(sandbox, settled.session) == EXPECTED


def die_around(session_id, *, call_type, number: int, moment: str) -> None:
    """Deliver, and die by SIGKILL at the `number`-th request of `call_type`: before it, or after its reply."""
    delivery = protocol.deliver(session_id, using=alias())
    outcome, seen = None, 0
    while True:
        request = delivery.send(outcome)
        if isinstance(request, Pause):
            outcome = None
            continue
        seen += isinstance(request, call_type)
        here = isinstance(request, call_type) and seen == number
        if here and moment == "begun, not sent":
            os.kill(os.getpid(), signal.SIGKILL)
        outcome = perform(request, clients.client_for(None))
        if here and moment == "replied, not settled":
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("moment", ["begun, not sent", "replied, not settled"])
@pytest.mark.parametrize(("call_type", "number"), [(CreateConversation, 1), (AppendItems, 1), (AppendItems, 2)])
def test_a_worker_killed_around_a_request_leaves_exactly_one_copy(sandbox, session, call_type, number, moment):
    write = append(session, ITEMS)
    status = in_a_forked_worker(lambda: die_around(session.pk, call_type=call_type, number=number, moment=moment))
    assert os.WTERMSIG(status) == signal.SIGKILL

    settled = deliver_until_settled(write)

    assert settled.state == WriteState.SAVED
    assert remote_texts(sandbox, session) == EXPECTED
    interrupted = RequestAttempt.objects.get(write=write, code="interrupted")
    assert (interrupted.operation, interrupted.outcome) == (call_type.operation, "unknown")


@pytest.mark.parametrize("kind", ["hang_before", "hang_after"])
def test_a_worker_killed_while_its_request_is_in_flight_leaves_exactly_one_copy(sandbox, session, kind):
    write = append(session, ITEMS)
    sandbox.fault(kind, operation="append_items", skip=1, seconds=0.8)
    connections.close_all()
    pid = os.fork()
    if pid == 0:
        try:
            operations.deliver(session.pk)
        finally:
            os._exit(1)
    eventually(lambda: [row for row in append_requests(sandbox, session)[1:] if row["finished_at"] is None])
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

    settled = deliver_until_settled(write)

    assert settled.state == WriteState.SAVED
    assert remote_texts(sandbox, session) == EXPECTED


def test_a_worker_killed_while_it_reconciles_leaves_the_decision_to_the_next(sandbox, session):
    write = append(session, ITEMS)
    sandbox.fault("lost_after", operation="append_items", skip=1)
    status = in_a_forked_worker(
        lambda: die_around(session.pk, call_type=ListItems, number=1, moment="replied, not settled")
    )
    assert os.WTERMSIG(status) == signal.SIGKILL

    settled = deliver_until_settled(write)

    assert settled.state == WriteState.SAVED
    assert remote_texts(sandbox, session) == EXPECTED
    assert len(append_requests(sandbox, session)) == 2
