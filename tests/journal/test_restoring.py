"""A journal restored from a backup: what was sent since is found in the remote history, and not sent again."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.exceptions import LeaseLost
from convsessions.journal import leases
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession, WriteChunk, WriteIntent
from convsessions.states import Resolution, WriteState
from tests.histories import (
    append,
    append_requests,
    deliver_until_settled,
    messages,
    remote_texts,
    texts,
)
from tests.restoring import Backup, deliver_all

pytestmark = pytest.mark.django_db(transaction=True)


def state_of(write: WriteIntent) -> str:
    return operations.get_write(write.pk).state


def test_what_was_delivered_since_the_backup_is_found_and_not_sent_again(sandbox, begun):
    writes = [append(begun, 45, prefix="a"), append(begun, 1, prefix="b"), append(begun, 21, prefix="c")]
    backup = Backup()
    deliver_all(*writes)
    before = len(sandbox.requests())

    backup.restore()
    assert [state_of(write) for write in writes] == [WriteState.PENDING] * 3
    done = operations.after_restore()

    assert (done.sessions, done.appends, done.pops) == (1, 3, 0)
    assert deliver_all(*writes) == [WriteState.SAVED] * 3
    expected = texts([*messages(1, prefix="first"), *messages(45, prefix="a"), *messages(1, prefix="b")])
    assert remote_texts(sandbox, begun) == [*expected, *texts(messages(21, prefix="c"))]
    # Six requests are accounted for by one reading of the history.
    assert [row["operation"] for row in sandbox.requests()[before:]] == ["list_items"]
    drift = operations.verify_session(begun.pk)
    assert not drift
    assert drift.foreign == []


def test_without_it_everything_would_be_sent_twice(sandbox, begun):
    write = append(begun, 1, prefix="a")
    backup = Backup()
    deliver_all(write)

    backup.restore()
    deliver_all(write)

    assert remote_texts(sandbox, begun) == ["first0", "a0", "a0"]


def test_what_was_delivered_in_part_goes_on_where_it_stood(sandbox, begun):
    write = append(begun, 65, prefix="a")
    backup = Backup()
    operations.deliver(begun.pk, budget=0)
    before = len(append_requests(sandbox, begun))
    assert operations.get_write(write.pk).items_saved == 20

    backup.restore()
    operations.after_restore()

    assert deliver_all(write) == [WriteState.SAVED]
    assert remote_texts(sandbox, begun) == texts([*messages(1, prefix="first"), *messages(65, prefix="a")])
    assert len(append_requests(sandbox, begun)) - before == 3


def test_what_was_in_flight_at_the_backup_is_decided_as_ever(sandbox, begun):
    sandbox.fault("lost_after", operation="append_items")
    write = append(begun, 25, prefix="a")
    operations.deliver(begun.pk, budget=0)
    assert write.chunks.get(first_item=0).state == WriteState.SENDING
    backup = Backup()
    deliver_all(write)

    backup.restore()
    operations.after_restore()

    assert deliver_all(write) == [WriteState.SAVED]
    assert remote_texts(sandbox, begun) == texts([*messages(1, prefix="first"), *messages(25, prefix="a")])


def test_what_was_not_delivered_is_sent_and_later_requests_are_not_doubted_for_long(sandbox, begun):
    writes = [append(begun, 65, prefix="a"), append(begun, 1, prefix="b")]
    Backup().restore()
    operations.after_restore()

    assert deliver_all(*writes) == [WriteState.SAVED] * 2

    expected = texts([*messages(1, prefix="first"), *messages(65, prefix="a"), *messages(1, prefix="b")])
    assert remote_texts(sandbox, begun) == expected
    # Looked for, and so sent "again", were only the first chunks of the two writes.
    assert list(WriteChunk.objects.filter(resent=True).values_list("first_item", flat=True)) == [0, 0]


def test_nothing_is_taken_for_absent_before_a_late_request_could_have_landed(sandbox, begun):
    write = append(begun, 1, prefix="a")
    Backup().restore()
    operations.after_restore()

    operations.deliver(begun.pk, budget=0)

    assert (operations.get_write(write.pk).hold_code, remote_texts(sandbox, begun)) == ("settling", ["first0"])


def test_equal_writes_of_which_one_was_delivered_end_as_two(sandbox, begun):
    writes = [append(begun, 1, prefix="yes"), append(begun, 1, prefix="yes")]
    backup = Backup()
    operations.deliver(begun.pk, budget=0)
    assert remote_texts(sandbox, begun) == ["first0", "yes0"]

    backup.restore()
    operations.after_restore()

    assert deliver_all(*writes) == [WriteState.SAVED] * 2
    assert remote_texts(sandbox, begun) == ["first0", "yes0", "yes0"]


def test_equal_writes_that_were_both_delivered_are_not_guessed_apart(sandbox, begun):
    write, second = append(begun, 1, prefix="yes"), append(begun, 1, prefix="yes")
    backup = Backup()
    deliver_all(write, second)

    backup.restore()
    operations.after_restore()

    settled = deliver_until_settled(write)
    assert (settled.state, settled.error_code) == (WriteState.AMBIGUOUS, "duplicated")
    operations.resolve_write(write.pk, Resolution.REMOVE_DUPLICATES, reason="restored")
    assert deliver_all(write, second) == [WriteState.SAVED] * 2
    assert remote_texts(sandbox, begun) == ["first0", "yes0", "yes0"]


def test_absent_beside_items_that_no_write_accounts_for_is_for_a_person(sandbox, begun):
    """It was delivered and popped, and then something was written of which the backup knows nothing."""
    write = append(begun, 1, prefix="a")
    backup = Backup()
    deliver_all(write, operations.pop_item(begun.pk), append(begun, 1, prefix="later"))

    backup.restore()
    operations.after_restore()

    settled = deliver_until_settled(write)
    assert (settled.state, settled.error_code) == (WriteState.AMBIGUOUS, "absent")
    assert remote_texts(sandbox, begun) == ["first0", "later0"]


@pytest.mark.parametrize("was_done", [True, False])
def test_a_pop_is_for_a_person_who_says_whether_it_was_done(sandbox, begun, was_done):
    deliver_all(append(begun, 2, prefix="a"))
    pop = operations.pop_item(begun.pk)
    backup = Backup()
    if was_done:
        deliver_all(pop)

    backup.restore()
    assert operations.after_restore().pops == 1
    after = append(begun, 1, prefix="b")

    settled = deliver_until_settled(pop)
    assert settled.state == WriteState.AMBIGUOUS
    assert operations.inspect_write(pop.pk).possible == [Resolution.ACCEPT, Resolution.RESEND, Resolution.ABANDON]
    assert remote_texts(sandbox, begun) == (["first0", "a0"] if was_done else ["first0", "a0", "a1"])
    operations.resolve_write(pop.pk, Resolution.ACCEPT if was_done else Resolution.RESEND, reason="I looked")
    assert deliver_all(pop, after) == [WriteState.SAVED] * 2
    assert remote_texts(sandbox, begun) == ["first0", "a0", "b0"]


def test_a_pop_that_had_found_its_item_is_done_again_which_is_harmless(sandbox, begun):
    deliver_all(append(begun, 2, prefix="a"))
    sandbox.fault("lost_after", operation="delete_item")
    pop = operations.pop_item(begun.pk)
    operations.deliver(begun.pk, budget=0)
    assert operations.get_write(pop.pk).target_id
    backup = Backup()
    deliver_all(pop)

    backup.restore()
    operations.after_restore()

    assert deliver_all(pop) == [WriteState.SAVED]
    assert remote_texts(sandbox, begun) == ["first0", "a0"]


def test_a_clear_takes_effect_again_and_what_follows_it_goes_to_a_new_conversation(sandbox, begun):
    clear = operations.clear_session(begun.pk)
    write = append(begun, 1, prefix="a")
    backup = Backup()
    deliver_all(clear, write)

    backup.restore()
    assert operations.after_restore().appends == 0

    assert deliver_all(clear, write) == [WriteState.SAVED] * 2
    assert remote_texts(sandbox, begun) == ["a0"]


def test_a_session_without_a_conversation_begins_one(sandbox, session):
    write = append(session, 25)
    backup = Backup()
    deliver_all(write)
    first = ConversationSession.objects.get().conversation_id

    backup.restore()
    done = operations.after_restore()

    assert (done.sessions, done.appends, done.without_conversation) == (1, 0, 1)
    assert deliver_all(write) == [WriteState.SAVED]
    session.refresh_from_db()
    assert session.conversation_id != first
    assert remote_texts(sandbox, session) == texts(messages(25))


@pytest.mark.parametrize("delivered", [True, False])
def test_in_an_adopted_conversation_an_equal_older_item_is_not_taken_for_the_write(sandbox, begun, delivered):
    """The journal knows nothing of ours there by which to tell old from new."""
    conversation = begun.conversation_id
    ConversationSession.objects.filter(pk=begun.pk).update(conversation_id=None)
    adopted = operations.create_session(conversation_id=conversation)
    write = append(adopted, 1, prefix="first" if not delivered else "new")
    backup = Backup()
    if delivered:
        deliver_all(write)

    backup.restore()
    assert operations.after_restore().appends == 1

    settled = deliver_until_settled(write)
    assert (settled.state, settled.error_code) == (WriteState.AMBIGUOUS, "contested")
    assert texts(sandbox.items(conversation)) == ["first0", *(["new0"] if delivered else [])]


def test_a_write_in_doubt_is_cancelled_only_as_far_as_it_is_not_there(sandbox, begun):
    writes = [append(begun, 25, prefix="a"), append(begun, 1, prefix="b")]
    backup = Backup()
    operations.deliver(begun.pk, budget=0)

    backup.restore()
    operations.after_restore()
    for write in writes:
        assert operations.cancel_write(write.pk).state == WriteState.PENDING

    assert deliver_all(*writes) == [WriteState.CANCELLED] * 2
    assert [operations.get_write(write.pk).items_saved for write in writes] == [20, 0]
    assert remote_texts(sandbox, begun) == texts([*messages(1, prefix="first"), *messages(20, prefix="a")])


def test_a_cancelled_pop_in_doubt_is_still_for_a_person(sandbox, begun):
    pop = operations.pop_item(begun.pk)
    Backup().restore()
    operations.after_restore()
    operations.cancel_write(pop.pk)

    assert deliver_until_settled(pop).state == WriteState.AMBIGUOUS


def test_a_clear_recorded_after_the_restore_takes_all_of_it_away(sandbox, begun):
    writes = [append(begun, 25, prefix="a"), operations.pop_item(begun.pk)]
    Backup().restore()
    operations.after_restore()
    clear = operations.clear_session(begun.pk)

    assert deliver_all(*writes, clear) == [WriteState.CANCELLED, WriteState.CANCELLED, WriteState.SAVED]


def test_a_rollback_is_not_offered_while_later_chunks_are_in_doubt(sandbox, begun, quick):
    quick["CHUNK_ITEMS"] = 2
    write = append(begun, 4, prefix="a")
    Backup().restore()
    operations.after_restore()
    sandbox.append_foreign(begun.conversation_id, messages(1, prefix="a"))

    assert deliver_until_settled(write).error_code == "partial"
    assert Resolution.ROLLBACK not in operations.inspect_write(write.pk).possible
    operations.resolve_write(write.pk, Resolution.RESEND, reason="nothing of it is ours")
    assert deliver_all(write) == [WriteState.SAVED]
    assert remote_texts(sandbox, begun) == ["first0", "a0", "a0", "a1", "a2", "a3"]


def test_a_worker_from_before_loses_its_lease(sandbox, begun):
    append(begun, 1, prefix="a")
    with leases.claim(begun.pk, using=alias()) as claimed:
        lease, _ = claimed

    operations.after_restore()

    with pytest.raises(LeaseLost), leases.turn(lease):
        pass


def test_twice_or_in_vain_it_does_no_harm(sandbox, begun):
    writes = [append(begun, 25, prefix="a"), append(begun, 1, prefix="b")]
    operations.after_restore()
    operations.after_restore()

    assert deliver_all(*writes) == [WriteState.SAVED] * 2
    assert remote_texts(sandbox, begun) == texts(
        [*messages(1, prefix="first"), *messages(25, prefix="a"), *messages(1, prefix="b")]
    )
