"""The database commits, and the connection breaks before it says so: whatever was recorded counts once.

A worker that tries such a step again (`leases.in_turn`) must notice that it was recorded. Each scenario is delivered
with the reply to its k-th commit lost; k runs over all commits of a delivery.
"""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection

from convsessions import operations
from convsessions.states import Resolution, WriteState
from tests.histories import append, deliver_until_settled, messages, remote_texts, texts

pytestmark = pytest.mark.django_db(transaction=True)


class LoseCommit:
    """The driver's commit, of which the reply to number `k` is lost, and the connection with it."""

    def __init__(self, k: int) -> None:
        self.k, self.count, self.commit = k, 0, connection._commit

    def __call__(self) -> None:
        self.commit()
        self.count += 1
        if self.count == self.k:
            connection.close_if_unusable_or_obsolete()
            raise OperationalError("the connection broke")


def plain(sandbox, session):
    return append(session, 45), lambda: remote_texts(sandbox, session) == texts(messages(45))


def skipping(sandbox, session):
    sandbox.fault("fussy", text="BAD", times=None, honest=True)
    items = messages(25)
    items[3]["content"] = items[22]["content"] = "BAD"
    write = operations.append_items(session.pk, items, on_refusal="skip")
    return write, lambda: remote_texts(sandbox, session) == [text for text in texts(items) if text != "BAD"]


def halving(sandbox, session):
    sandbox.fault("fussy", text="BAD", times=None)
    items = messages(4)
    items[2]["content"] = "BAD"
    write = operations.append_items(session.pk, items, on_refusal="skip")
    return write, lambda: remote_texts(sandbox, session) == [text for text in texts(items) if text != "BAD"]


def popping(sandbox, session):
    deliver_until_settled(append(session, 3))
    return operations.pop_item(session.pk), lambda: remote_texts(sandbox, session) == ["m0", "m1"]


def erasing(sandbox, session):
    deliver_until_settled(append(session, 3))
    session.refresh_from_db()
    conversation_id = session.conversation_id

    def is_erased() -> bool:
        gone = sandbox.conversation(conversation_id)
        return (gone["items"], gone["deleted"]) == ([], True)

    return operations.clear_session(session.pk, erase=True), is_erased


def ambiguous(sandbox, session):
    write = append(session, 3)
    sandbox.fault("twice", lost=True)
    write = deliver_until_settled(write)
    assert write.state == WriteState.AMBIGUOUS
    return write


def removing_copies(sandbox, session):
    write = ambiguous(sandbox, session)
    operations.resolve_write(write.pk, Resolution.REMOVE_DUPLICATES, reason="twice")
    return write, lambda: remote_texts(sandbox, session) == texts(messages(3))


def rolling_back(sandbox, session):
    write = ambiguous(sandbox, session)
    operations.resolve_write(write.pk, Resolution.ROLLBACK, reason="twice")
    return write, lambda: remote_texts(sandbox, session) == []


def reconciling(sandbox, session):
    sandbox.fault("lost_before", operation="append_items")
    sandbox.fault("lost_after", operation="append_items", skip=1)
    return append(session, 25), lambda: remote_texts(sandbox, session) == texts(messages(25))


def deleting(sandbox, session):
    deliver_until_settled(append(session, 1))
    session.refresh_from_db()
    conversation_id = session.conversation_id
    write = operations.delete_session(session.pk)
    return write, lambda: sandbox.conversation(conversation_id)["deleted"]


EXPECTED = {rolling_back: WriteState.CANCELLED}


@pytest.mark.parametrize(
    "scenario",
    [plain, skipping, halving, popping, erasing, removing_copies, rolling_back, reconciling, deleting],
    ids=lambda scenario: scenario.__name__,
)
def test_a_lost_reply_to_any_commit_records_nothing_twice(sandbox, transactional_db, scenario, quick, monkeypatch):
    quick |= {"REQUEST_TIMEOUT": 0.5, "LEASE_GRACE": 0.3, "SETTLE_SECONDS": 0.05}
    for k in range(1, 60):
        sandbox.clear_faults()
        session = operations.create_session()
        write, is_right = scenario(sandbox, session)
        losing = LoseCommit(k)
        with monkeypatch.context() as patched:
            patched.setattr(connection, "_commit", losing)
            try:
                operations.deliver(session.pk)
            except OperationalError:  # of the claim, which is not tried again: another task comes
                assert k == 1
        settled = deliver_until_settled(write)
        assert settled.state == EXPECTED.get(scenario, WriteState.SAVED), k
        assert is_right(), k
        if losing.count < k:
            break
    assert k > 2
