"""What the journal costs: statements and commits per chunk, memory per append, and no transaction around a request."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test.utils import CaptureQueriesContext

from convsessions import operations
from convsessions.delivery import protocol, threads
from convsessions.delivery.drivers import perform
from convsessions.journal.locking import alias
from convsessions.models import WriteChunk
from convsessions.remote import clients
from convsessions.remote.calls import Pause
from convsessions.states import WriteState
from tests.histories import append, messages, remote_texts, texts

pytestmark = pytest.mark.django_db(transaction=True)

STATEMENTS_A_CHUNK = 9
COMMITS_A_CHUNK = 1


def statements_and_commits(work):
    """SQL statements (without BEGIN and COMMIT) and commits that `work` makes."""
    commits = 0
    commit = connection._commit

    def counted():
        nonlocal commits
        commits += 1
        return commit()

    connection._commit = counted
    try:
        with CaptureQueriesContext(connection) as captured:
            work()
    finally:
        del connection._commit
    statements = [
        query["sql"] for query in captured if not query["sql"].startswith(("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE"))
    ]
    return len(statements), commits


def cost_of_delivering(items: int):
    session = operations.create_session()
    append(session, items)
    return statements_and_commits(lambda: operations.deliver(session.pk))


def test_a_chunk_costs_one_commit_and_a_fixed_number_of_statements(sandbox):
    two, four = cost_of_delivering(40), cost_of_delivering(80)

    assert four[1] - two[1] == 2 * COMMITS_A_CHUNK
    assert four[0] - two[0] == 2 * STATEMENTS_A_CHUNK


def test_an_inline_append_of_one_chunk_is_two_commits(sandbox, session, monkeypatch):
    """Record and claim are one, settling the other."""
    append(session, 1)
    operations.deliver(session.pk)
    commits, commit = [], BaseDatabaseWrapper._commit
    monkeypatch.setattr(BaseDatabaseWrapper, "_commit", lambda self: commits.append(1) or commit(self))

    write = asyncio.run(operations.write_through(lambda: append(session, 20, prefix="inline"), patience=30))

    assert write.state == WriteState.SAVED
    assert len(commits) == 2
    threads.close()


def test_what_cannot_be_recorded_claims_nothing(sandbox, session):
    def refuse():
        append(session, 1)
        raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(operations.write_through(refuse, patience=30))
    threads.close()

    session.refresh_from_db()
    assert (session.writes.count(), session.lease_token, session.last_sequence) == (0, None, 0)


def test_recording_costs_the_same_commits_whatever_its_size(transactional_db):
    session = operations.create_session()
    costs = [statements_and_commits(lambda count=count: append(session, count)) for count in (20, 2000)]
    assert [commits for _, commits in costs] == [1, 1]
    # the lock, the write, the session, and an INSERT for each hundred chunks (SQLite: 83)
    assert costs[0][0] == 4
    assert costs[1][0] <= 5


def test_ten_thousand_items_are_recorded_in_a_few_statements_and_bounded_memory(transactional_db):
    session = operations.create_session()
    items = messages(10_000)
    tracemalloc.start()
    statements, commits = statements_and_commits(lambda: operations.append_items(session.pk, items))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (WriteChunk.objects.count(), commits) == (500, 1)
    assert statements <= 4 + 10 * 3
    assert peak < 40 * 1024 * 1024


def test_ten_thousand_items_are_uploaded_in_order(sandbox, session, quick):
    quick["DELIVERY_BUDGET"] = 300.0
    write = append(session, 10_000)
    operations.deliver(session.pk)

    assert operations.get_write(write.pk).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == texts(messages(10_000))
    assert len(sandbox.requests()) == 501


def test_no_request_is_made_inside_a_transaction(sandbox, session):
    """Append, lost reply, reconciliation, pop and clear: at every request, no connection is in a transaction."""
    append(session, 45)
    operations.pop_item(session.pk)
    sandbox.fault("lost_before", operation="append_items", skip=1)
    delivery = protocol.deliver(session.pk, using=alias())
    seen, outcome = [], None
    while True:
        try:
            request = delivery.send(outcome)
        except StopIteration:
            break
        assert [one.in_atomic_block for one in connections.all(initialized_only=True)] == [False] * len(
            connections.all(initialized_only=True)
        )
        if isinstance(request, Pause):
            outcome = None
            operations.clear_session(session.pk)  # joins the queue meanwhile
            continue
        seen.append(request.operation)
        outcome = perform(request, clients.client_for(None))
    assert seen[:3] == ["create_conversation", "append_items", "append_items"]
    assert seen[-1] == "delete_conversation"


def test_the_driver_refuses_to_call_inside_a_transaction(sandbox, session):
    append(session, 1)
    delivery = protocol.deliver(session.pk, using=alias())
    request = delivery.send(None)
    with transaction.atomic(), pytest.raises(RuntimeError):
        perform(request, clients.client_for(None))
    delivery.close()
    assert sandbox.requests() == []
