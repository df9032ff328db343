"""Every fault that the sandbox can make, made while an append of three chunks is delivered."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.models import Reconciliation, RequestAttempt
from convsessions.states import OutcomeKind, Verdict, WriteState
from tests.histories import append, append_requests, deliver_until_settled, messages, remote_texts, texts

pytestmark = pytest.mark.django_db(transaction=True)

EXPECTED = texts(messages(45))

UNKNOWN_BUT_SAVED = {
    "reply lost": ("lost_after", {}),
    "500 after saving": ("error_after", {"status": 500}),
    "502 after saving": ("error_after", {"status": 502}),
    "408 after saving": ("error_after", {"status": 408}),
    "409 after saving": ("error_after", {"status": 409}),
    "hang after saving": ("hang_after", {"seconds": 1.5}),
    "truncated reply": ("truncated", {}),
    "HTML with 200": ("html", {}),
    "fewer ids than items": ("fewer_ids", {}),
    "a byte now and then": ("trickle", {"seconds": 0.3}),
    "applied late, within the deadline": ("late_apply", {"seconds": 0.5}),
    "applied after the deadline, within the settle delay": ("hang_before", {"seconds": 1.2}),
}
UNKNOWN_AND_ABSENT = {
    "dropped before saving": ("lost_before", {}),
    "500 before saving": ("error_before", {"status": 500}),
    "503 before saving": ("error_before", {"status": 503}),
    "hang, and never saved": ("hang_lost", {"seconds": 1.5}),
    "HTML before saving": ("html_before", {}),
}
NOT_APPLIED_AND_RETRIED = {
    "rate limit": ("rate_limited", {"retry_after": "0.1"}),
    "rate limit without Retry-After": ("rate_limited", {}),
    "busy conversation": ("locked", {}),
    "quota": ("quota", {}),
    "bad key": ("bad_key", {}),
    "forbidden": ("forbidden", {}),
}


def deliver_with(sandbox, session, fault):
    kind, options = fault
    write = append(session, 45)
    sandbox.fault(kind, operation="append_items", skip=1, **options)
    return deliver_until_settled(write)


def attempts_that_failed(write):
    return list(RequestAttempt.objects.filter(write=write).exclude(outcome="applied").values_list("outcome", flat=True))


@pytest.mark.parametrize("fault", UNKNOWN_BUT_SAVED.values(), ids=UNKNOWN_BUT_SAVED.keys())
def test_an_unknown_outcome_that_was_saved_is_found_and_not_sent_again(sandbox, session, fault, quick):
    quick["SETTLE_SECONDS"] = 1.0  # on a busy machine, too, the latest of them is stored well before it is over
    write = deliver_with(sandbox, session, fault)

    assert write.state == WriteState.SAVED
    assert remote_texts(sandbox, session) == EXPECTED
    assert attempts_that_failed(write) == [OutcomeKind.UNKNOWN]
    assert list(write.reconciliations.values_list("verdict", flat=True)) == [Verdict.SAVED]
    assert len(append_requests(sandbox, session)) == 3


@pytest.mark.parametrize("fault", UNKNOWN_AND_ABSENT.values(), ids=UNKNOWN_AND_ABSENT.keys())
def test_an_unknown_outcome_that_was_not_saved_is_proven_absent_and_sent_again(sandbox, session, fault):
    write = deliver_with(sandbox, session, fault)

    assert write.state == WriteState.SAVED
    assert remote_texts(sandbox, session) == EXPECTED
    assert attempts_that_failed(write) == [OutcomeKind.UNKNOWN]
    # absent, then the last look for a copy that landed late after all
    assert list(write.reconciliations.values_list("verdict", flat=True)) == [Verdict.ABSENT, Verdict.SAVED]


@pytest.mark.parametrize("fault", NOT_APPLIED_AND_RETRIED.values(), ids=NOT_APPLIED_AND_RETRIED.keys())
def test_a_request_that_was_turned_away_is_sent_again_without_reading_the_history(sandbox, session, fault, quick):
    write = deliver_with(sandbox, session, fault)
    if write.needs_attention:
        operations.retry_write(write.pk)
        write = deliver_until_settled(write)

    assert write.state == WriteState.SAVED
    assert remote_texts(sandbox, session) == EXPECTED
    assert attempts_that_failed(write) == [OutcomeKind.NOT_APPLIED]
    assert not Reconciliation.objects.filter(write=write).exists()


@pytest.mark.parametrize("kind", ["quota", "bad_key", "forbidden"])
def test_what_only_a_person_can_mend_is_held_and_listed(sandbox, session, kind, quick):
    quick["RETRY_BACKOFF"] = (0.05, 300.0)
    write = append(session, 45)
    sandbox.fault(kind, operation="append_items", skip=1, times=None)
    operations.deliver(session.pk)

    held = operations.get_write(write.pk)
    assert (held.state, held.hold_code, held.items_saved) == (WriteState.SENDING, kind, 20)
    assert held.needs_attention
    session.refresh_from_db()
    assert session.wake_at == held.next_attempt_at


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_definite_no_ends_the_write_and_says_what_was_saved(sandbox, session, status):
    write = append(session, 45)
    later = append(session, 1, prefix="later")
    sandbox.fault("error_before", operation="append_items", skip=1, status=status, code="bad", param="items[3].content")
    operations.deliver(session.pk)

    refused = operations.get_write(write.pk)
    assert (refused.state, refused.items_saved) == (WriteState.REFUSED, 20)
    assert (refused.error_code, refused.error_param) == ("bad", "items[23].content")  # the 4th of the 2nd request
    assert list(refused.chunks.values_list("state", flat=True)) == ["saved", "refused", "pending"]
    assert operations.get_write(later.pk).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == [*EXPECTED[:20], "later0"]


def test_content_that_the_server_altered_is_not_taken_for_saved(sandbox, session):
    write = deliver_with(sandbox, session, ("rewritten", {}))

    assert (write.state, write.items_saved) == (WriteState.AMBIGUOUS, 20)
    assert write.reconciliations.get().verdict == Verdict.PARTIAL


def test_altered_content_is_not_taken_for_absent_when_it_is_looked_at_again(sandbox, session):
    write = deliver_with(sandbox, session, ("rewritten", {}))
    operations.reconcile_write(write.pk)
    write = deliver_until_settled(write)

    assert write.state == WriteState.AMBIGUOUS
    assert [row.verdict for row in write.reconciliations.all()] == [Verdict.PARTIAL, "", Verdict.PARTIAL]
    assert len(append_requests(sandbox, session)) == 2


def test_a_foreign_writer_in_between_does_not_disturb_the_decision(sandbox, session):
    write = append(session, 45)
    sandbox.fault("foreign", operation="append_items", skip=1)
    sandbox.fault("lost_after", operation="append_items", skip=1)
    write = deliver_until_settled(write)

    assert write.state == WriteState.SAVED
    ours = [text for text in remote_texts(sandbox, session) if text in EXPECTED]
    assert ours == EXPECTED


def test_a_copy_that_a_proxy_made_is_found_with_the_lost_reply(sandbox, session):
    write = append(session, 5)
    sandbox.fault("twice", lost=True)
    write = deliver_until_settled(write)

    assert write.state == WriteState.AMBIGUOUS
    assert write.reconciliations.get().verdict == Verdict.DUPLICATED


def test_a_copy_that_no_reply_told_of_is_found_where_writes_are_verified(sandbox, session, quick):
    quick["VERIFY_WRITES"] = True
    write = append(session, 45)
    sandbox.fault("twice", skip=1)
    write = deliver_until_settled(write)

    assert (write.state, write.items_saved) == (WriteState.AMBIGUOUS, 45)
    assert len(write.reconciliations.get().evidence["extra"]) == 20


def test_verifying_a_write_costs_one_read(sandbox, session, quick):
    quick["VERIFY_WRITES"] = True
    assert deliver_until_settled(append(session, 45)).state == WriteState.SAVED
    assert [row["operation"] for row in sandbox.requests()] == [
        "create_conversation",
        *["append_items"] * 3,
        "list_items",
    ]


def test_a_request_that_lands_after_it_was_judged_absent_is_found_at_the_end(sandbox, session, quick):
    """The settle delay is a bound on lateness that a server may break; then the copy is flagged, not left."""
    quick["SETTLE_SECONDS"] = 0.0
    write = append(session, 45)
    sandbox.fault("late_apply", operation="append_items", skip=1, seconds=1.3)
    sandbox.fault("latency", operation="append_items", skip=2, seconds=0.8)
    write = deliver_until_settled(write)

    assert (write.state, write.items_saved) == (WriteState.AMBIGUOUS, 45)
    assert write.error_code == Verdict.DUPLICATED


def test_a_vanished_conversation_is_held_and_never_replaced(sandbox, session, quick):
    quick["RETRY_BACKOFF"] = (0.05, 300.0)
    deliver_until_settled(append(session, 1))
    session.refresh_from_db()
    conversation_id = session.conversation_id
    sandbox.fault("error_before", operation="append_items", status=404, times=None)
    write = append(session, 1)
    operations.deliver(session.pk)

    held = operations.get_write(write.pk)
    session.refresh_from_db()
    assert (held.hold_code, held.needs_attention) == ("conversation_missing", True)
    assert session.conversation_id == conversation_id
