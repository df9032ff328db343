"""An append that leaves one half of a pair behind says so, and an operator can remove it."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.exceptions import IllegalMove, InvalidInput
from convsessions.states import Resolution, WriteKind, WriteState
from tests.histories import deliver_until_settled, messages

pytestmark = pytest.mark.django_db(transaction=True)


def call(number, text="{}"):
    return {"type": "function_call", "call_id": f"call_{number}", "name": "look", "arguments": text}


def output(number, text="done"):
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": text}


def kinds(sandbox, session):
    session.refresh_from_db()
    return [item["type"] for item in sandbox.items(session.conversation_id)]


@pytest.fixture
def broken(sandbox, session):
    """A call whose output the API refused, and the policy skipped; then a whole pair."""
    sandbox.fault("fussy", text="BAD", times=None)
    items = [*messages(1), call(1), output(1, "BAD"), call(2), output(2)]
    return deliver_until_settled(operations.append_items(session.pk, items, on_refusal="skip"))


def test_a_skipped_output_leaves_a_half_pair(sandbox, session, broken):
    session.refresh_from_db()
    stored = sandbox.items(session.conversation_id)
    assert broken.state == WriteState.SAVED
    assert broken.half_pairs == [{"item": 1, "id": stored[1]["id"], "type": "function_call", "missing": 2}]


def test_a_refused_request_leaves_the_half_that_was_saved_before_it(sandbox, session, settings):
    settings.CONVSESSIONS["CHUNK_ITEMS"] = 1
    sandbox.fault("fussy", text="BAD", times=None, honest=True)
    write = deliver_until_settled(operations.append_items(session.pk, [call(1), output(1, "BAD")]))

    assert write.state == WriteState.REFUSED
    assert [(half["item"], half["missing"]) for half in write.half_pairs] == [(0, 1)]


def test_abandoning_leaves_the_half_that_was_saved_before_it(sandbox, session, settings):
    settings.CONVSESSIONS["CHUNK_ITEMS"] = 1
    sandbox.fault("twice", skip=1, lost=True)
    write = deliver_until_settled(operations.append_items(session.pk, [call(1), output(1), *messages(1)]))
    assert write.state == WriteState.AMBIGUOUS

    operations.resolve_write(write.pk, Resolution.ABANDON, reason="enough")
    assert [half["item"] for half in operations.get_write(write.pk).half_pairs] == [0]


def test_a_write_without_a_broken_pair_has_none(sandbox, session):
    sandbox.fault("fussy", text="BAD", times=None)
    items = [call(1), output(1), {"role": "user", "content": "BAD"}, *messages(1)]
    write = deliver_until_settled(operations.append_items(session.pk, items, on_refusal="skip"))
    assert (write.items_saved, write.half_pairs) == (3, [])


@pytest.mark.parametrize("kind", [None, "lost_after", "lost_before", "error_before"])
def test_the_remedy_deletes_the_half_and_nothing_else(sandbox, session, broken, kind, admin_user):
    sandbox.clear_faults()
    if kind:
        sandbox.fault(kind, operation="delete_item")
    removal = operations.remove_half_pairs(broken.pk, reason="the model refuses to go on", actor=admin_user)
    removal = deliver_until_settled(removal)

    assert (removal.kind, removal.state) == (WriteKind.REMOVE, WriteState.SAVED)
    assert kinds(sandbox, session) == ["message", "function_call", "function_call_output"]
    assert not operations.verify_session(session.pk)
    row = broken.reconciliations.get(resolution=Resolution.REMOVE_HALVES)
    assert (row.actor, row.reason, len(row.evidence["halves"])) == (admin_user, "the model refuses to go on", 1)


def test_the_remedy_is_given_once_and_with_a_reason(sandbox, session, broken):
    with pytest.raises(InvalidInput):
        operations.remove_half_pairs(broken.pk, reason=" ")
    operations.remove_half_pairs(broken.pk, reason="x")
    with pytest.raises(IllegalMove):
        operations.remove_half_pairs(broken.pk, reason="x")


def test_a_cleared_session_has_nothing_to_remedy(sandbox, session, broken):
    sandbox.clear_faults()
    deliver_until_settled(operations.clear_session(session.pk))
    with pytest.raises(IllegalMove):
        operations.remove_half_pairs(broken.pk, reason="x")


def test_what_comes_after_a_removal_is_not_looked_for_behind_an_item_that_is_gone(sandbox, session, settings):
    settings.CONVSESSIONS["CHUNK_ITEMS"] = 1
    sandbox.fault("fussy", text="BAD", times=None, honest=True)
    write = deliver_until_settled(operations.append_items(session.pk, [call(1), output(1, "BAD")]))
    deliver_until_settled(operations.remove_half_pairs(write.pk, reason="half a thought"))

    sandbox.clear_faults()
    sandbox.fault("lost_after", operation="append_items")
    after = deliver_until_settled(operations.append_items(session.pk, messages(1)))

    assert after.state == WriteState.SAVED
    assert kinds(sandbox, session) == ["message"]
