"""What each resolution of an ambiguous write does to the journal and to the remote history."""

from __future__ import annotations

import openai
import pytest

from convsessions import operations
from convsessions.delivery import settling
from convsessions.exceptions import EvidenceChanged, IllegalMove, InvalidInput, RemoteReadFailed
from convsessions.journal import resolving
from convsessions.states import CancelCause, Resolution, Verdict, WriteState
from tests.histories import append, deliver_until_settled, messages, remote_texts, texts

pytestmark = pytest.mark.django_db(transaction=True)

EXPECTED = texts(messages(25))


@pytest.fixture
def duplicated(sandbox, session):
    """25 items; a proxy sent the first chunk twice and lost the reply."""
    write = append(session, 25)
    sandbox.fault("twice", lost=True)
    write = deliver_until_settled(write)
    assert (write.state, write.error_code) == (WriteState.AMBIGUOUS, Verdict.DUPLICATED)
    return write


@pytest.fixture
def partial(sandbox, session):
    """25 items; of the first chunk, whose request was lost, somebody else appended a part."""
    write = append(session, 25)
    sandbox.fault("lost_before", operation="append_items")
    operations.deliver(session.pk, budget=0)  # creates the conversation
    operations.deliver(session.pk, budget=0)  # sends, and loses the request
    session.refresh_from_db()
    sandbox.append_foreign(session.conversation_id, messages(3))
    write = deliver_until_settled(write)
    assert (write.state, write.error_code) == (WriteState.AMBIGUOUS, Verdict.PARTIAL)
    return write


def resolve(write, resolution):
    token = operations.inspect_write(write.pk).token
    operations.resolve_write(write.pk, resolution, reason="looked at it", evidence=token)
    return deliver_until_settled(write)


def test_removing_duplicates_leaves_one_copy_and_goes_on(sandbox, session, duplicated):
    write = resolve(duplicated, Resolution.REMOVE_DUPLICATES)

    assert (write.state, write.items_saved) == (WriteState.SAVED, 25)
    assert remote_texts(sandbox, session) == EXPECTED


@pytest.mark.parametrize("kind", ["lost_after", "lost_before", "error_before"])
def test_removing_duplicates_survives_lost_replies(sandbox, session, duplicated, kind):
    sandbox.fault(kind, operation="delete_item", skip=3, times=2)
    write = resolve(duplicated, Resolution.REMOVE_DUPLICATES)

    assert write.state == WriteState.SAVED
    assert remote_texts(sandbox, session) == EXPECTED


def test_accepting_a_duplicate_keeps_it_and_goes_on(sandbox, session, duplicated):
    write = resolve(duplicated, Resolution.ACCEPT)

    assert (write.state, write.items_saved) == (WriteState.SAVED, 25)
    assert remote_texts(sandbox, session) == [*EXPECTED[:20], *EXPECTED]


def test_a_rollback_removes_all_of_the_write(sandbox, session, duplicated):
    write = resolve(duplicated, Resolution.ROLLBACK)

    assert (write.state, write.cancel_cause, write.items_saved) == (WriteState.CANCELLED, CancelCause.OPERATOR, 0)
    assert remote_texts(sandbox, session) == []


def test_abandoning_leaves_the_remote_alone_and_lets_later_writes_go_on(sandbox, session, partial):
    later = append(session, 1, prefix="later")
    write = resolve(partial, Resolution.ABANDON)

    assert (write.state, write.cancel_cause) == (WriteState.CANCELLED, CancelCause.OPERATOR)
    assert deliver_until_settled(later).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == [*EXPECTED[:3], "later0"]


def test_sending_again_appends_the_whole_chunk(sandbox, session, partial):
    write = resolve(partial, Resolution.RESEND)

    assert (write.state, write.items_saved) == (WriteState.SAVED, 25)
    assert remote_texts(sandbox, session) == [*EXPECTED[:3], *EXPECTED]


def test_accepting_a_part_takes_it_for_the_chunk(sandbox, session, partial):
    write = resolve(partial, Resolution.ACCEPT)

    assert (write.state, write.items_saved) == (WriteState.SAVED, 25)
    assert remote_texts(sandbox, session) == [*EXPECTED[:3], *EXPECTED[20:]]


def test_checking_again_decides_when_the_cause_is_gone(sandbox, session, partial):
    session.refresh_from_db()
    for item in sandbox.items(session.conversation_id):
        delete_remotely(sandbox, session, item["id"])
    write = resolve(partial, Resolution.RECHECK)

    assert write.state == WriteState.SAVED
    assert remote_texts(sandbox, session) == EXPECTED


def delete_remotely(sandbox, session, item_id):
    with openai.OpenAI(max_retries=0) as client:
        client.conversations.items.delete(item_id, conversation_id=session.conversation_id)


def test_a_resolution_on_stale_evidence_is_refused(sandbox, session, duplicated):
    token = operations.inspect_write(duplicated.pk).token
    session.refresh_from_db()
    sandbox.append_foreign(session.conversation_id, messages(1, prefix="moved"))

    with pytest.raises(EvidenceChanged):
        operations.resolve_write(duplicated.pk, Resolution.ACCEPT, reason="x", evidence=token)
    assert operations.get_write(duplicated.pk).state == WriteState.AMBIGUOUS


def test_a_second_resolution_is_refused(sandbox, session, duplicated):
    token = operations.inspect_write(duplicated.pk).token
    operations.resolve_write(duplicated.pk, Resolution.ACCEPT, reason="x", evidence=token)
    with pytest.raises(IllegalMove):
        operations.resolve_write(duplicated.pk, Resolution.ROLLBACK, reason="x", evidence=token)


def test_a_reason_is_mandatory(sandbox, duplicated):
    with pytest.raises(InvalidInput) as caught:
        operations.resolve_write(duplicated.pk, Resolution.ACCEPT, reason=" ")
    assert caught.value.field == "reason"


def test_an_impossible_resolution_is_refused(sandbox, duplicated):
    with pytest.raises(InvalidInput) as caught:
        operations.resolve_write(duplicated.pk, Resolution.RESEND, reason="x")
    assert caught.value.field == "resolution"


def test_every_resolution_leaves_a_row(sandbox, duplicated):
    resolve(duplicated, Resolution.REMOVE_DUPLICATES)
    row = duplicated.reconciliations.exclude(resolution="").get()
    assert (row.resolution, row.reason, row.verdict) == ("remove_duplicates", "looked at it", "duplicated")
    assert len(row.evidence["extra"]) == 20


def test_a_session_that_matches_the_journal_has_no_drift(sandbox, session):
    deliver_until_settled(append(session, 25))
    drift = operations.verify_session(session.pk)
    assert not drift
    assert drift.checked == 25


def test_a_saved_item_that_is_gone_is_reported(sandbox, session):
    deliver_until_settled(append(session, 25))
    session.refresh_from_db()
    gone = sandbox.items(session.conversation_id)[3]["id"]
    delete_remotely(sandbox, session, gone)
    assert operations.verify_session(session.pk).missing == [gone]


def test_abandoning_needs_no_readable_history(sandbox, session, duplicated):
    sandbox.fault("read_error", operation="list_items", times=None)
    operations.resolve_write(duplicated.pk, Resolution.ABANDON, reason="the conversation is beyond reach")
    assert operations.get_write(duplicated.pk).state == WriteState.CANCELLED


def test_other_resolutions_need_one(sandbox, session, duplicated):
    sandbox.fault("read_error", operation="list_items", times=None)
    with pytest.raises(RemoteReadFailed):
        operations.resolve_write(duplicated.pk, Resolution.ACCEPT, reason="x")
    assert operations.get_write(duplicated.pk).state == WriteState.AMBIGUOUS


def test_accepting_after_a_refused_removal_deletes_nothing_more(sandbox, session, duplicated):
    sandbox.fault("error_before", operation="delete_item", status=400)
    write = resolve(duplicated, Resolution.REMOVE_DUPLICATES)
    assert write.state == WriteState.AMBIGUOUS
    write = resolve(write, Resolution.ACCEPT)

    assert write.state == WriteState.SAVED
    assert remote_texts(sandbox, session) == [*EXPECTED[:20], *EXPECTED]


def test_checking_again_after_a_refused_removal_tries_the_removal_again(sandbox, session, duplicated):
    sandbox.fault("error_before", operation="delete_item", status=400)
    write = resolve(duplicated, Resolution.REMOVE_DUPLICATES)
    assert write.state == WriteState.AMBIGUOUS
    write = resolve(write, Resolution.RECHECK)

    assert write.state == WriteState.SAVED
    assert remote_texts(sandbox, session) == EXPECTED


@pytest.fixture
def refused(sandbox, session):
    """45 items, refused at the second chunk; a later write was applied."""
    write, later = append(session, 45), append(session, 1, prefix="later")
    sandbox.fault("error_before", operation="append_items", skip=1, status=400, code="bad", param="items[0]")
    assert deliver_until_settled(write).state == WriteState.REFUSED
    assert deliver_until_settled(later).state == WriteState.SAVED
    return write


def test_a_refused_write_is_tried_again_after_later_ones(sandbox, session, refused):
    operations.retry_write(refused.pk)
    write = deliver_until_settled(refused)

    assert (write.state, write.items_saved, write.sequence) == (WriteState.SAVED, 45, 3)
    everything = texts(messages(45))
    assert remote_texts(sandbox, session) == [*everything[:20], "later0", *everything[20:]]


@pytest.mark.parametrize("delivered", [True, False])
def test_a_refused_write_of_before_a_clear_cannot_be_tried_again(sandbox, session, refused, delivered):
    operations.clear_session(session.pk)
    if delivered:
        operations.deliver(session.pk)
    with pytest.raises(IllegalMove):
        operations.retry_write(refused.pk)


@pytest.mark.parametrize("kind", ["lost_after", "lost_before"])
def test_a_pop_refused_after_an_unknown_try_is_decided_by_trying_again(sandbox, session, kind):
    deliver_until_settled(append(session, 3))
    pop = operations.pop_item(session.pk)
    sandbox.fault(kind, operation="delete_item")
    sandbox.fault("error_before", operation="delete_item", status=400)
    pop = deliver_until_settled(pop)
    assert (pop.state, pop.target_id != "") == (WriteState.AMBIGUOUS, True)

    operations.reconcile_write(pop.pk, reason="the API is itself again")
    assert deliver_until_settled(pop).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == ["m0", "m1"]


def test_a_pop_refused_at_its_first_try_is_refused(sandbox, session):
    deliver_until_settled(append(session, 3))
    pop = operations.pop_item(session.pk)
    sandbox.fault("error_before", operation="delete_item", status=400)

    assert deliver_until_settled(pop).state == WriteState.REFUSED
    assert remote_texts(sandbox, session) == ["m0", "m1", "m2"]


def test_a_look_that_a_worker_took_meanwhile_makes_a_decision_stale(sandbox, session, partial):
    shown = operations.inspect_write(partial.pk)
    operations.reconcile_write(partial.pk)
    assert deliver_until_settled(partial).state == WriteState.AMBIGUOUS

    with pytest.raises(EvidenceChanged):
        resolving.resolve(
            partial.pk,
            Resolution.ABANDON,
            finding=shown.evidence,
            verdict=shown.verdict,
            seen=shown.seen,
            actor=None,
            reason="looked at it",
        )
    assert operations.get_write(partial.pk).state == WriteState.AMBIGUOUS


def test_a_resend_begins_to_count_anew(sandbox, session, quick):
    quick |= {"REQUEST_TIMEOUT": 0.2, "LEASE_GRACE": 0.3, "SETTLE_SECONDS": 0.05, "RETRY_BACKOFF": (0.01, 0.02)}
    sandbox.fault("lost_before", operation="append_items", times=settling.MAX_SENDS + 1)
    write = deliver_until_settled(append(session, 1))
    assert (write.state, write.error_code) == (WriteState.AMBIGUOUS, Verdict.ABSENT)

    write = resolve(write, Resolution.RESEND)

    assert write.state == WriteState.SAVED
    assert remote_texts(sandbox, session) == ["m0"]


def test_a_rollback_takes_back_what_was_saved_before_it_was_asked_for(sandbox, session):
    deliver_until_settled(append(session, 1, prefix="before"))
    sandbox.fault("twice", skip=1, lost=True)
    write = deliver_until_settled(append(session, 25))
    assert (write.state, write.items_saved) == (WriteState.AMBIGUOUS, 20)

    write = resolve(write, Resolution.ROLLBACK)

    assert (write.state, write.items_saved) == (WriteState.CANCELLED, 0)
    assert remote_texts(sandbox, session) == ["before0"]
