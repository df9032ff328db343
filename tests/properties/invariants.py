"""What holds of every session after each step of the state machine."""

from __future__ import annotations

import uuid

from convsessions.models import ConversationSession, WriteChunk, WriteIntent
from convsessions.states import ACTIVE_STATES, RefusalPolicy, Resolution, WriteKind, WriteState

from .remote_model import RemoteModel

NOTHING: set[WriteState] = set()
FIRST_UNSAVED = {
    WriteState.PENDING: {WriteState.PENDING},
    # ambiguous: while an operator's resolution deletes items
    WriteState.SENDING: {WriteState.PENDING, WriteState.SENDING, WriteState.AMBIGUOUS},
    WriteState.SAVED: NOTHING,
    WriteState.AMBIGUOUS: {WriteState.AMBIGUOUS, WriteState.PENDING},
    # pending: refused before a request of it was sent, as creating its conversation was
    WriteState.REFUSED: {WriteState.REFUSED, WriteState.PENDING},
    WriteState.CANCELLED: {WriteState.CANCELLED},
}
OTHERS_UNSAVED = {
    WriteState.PENDING: {WriteState.PENDING},
    WriteState.SENDING: {WriteState.PENDING},
    WriteState.SAVED: NOTHING,
    WriteState.AMBIGUOUS: {WriteState.PENDING},
    WriteState.REFUSED: {WriteState.PENDING},  # an operator's retry sends them
    WriteState.CANCELLED: {WriteState.CANCELLED},
}


class Invariants:
    remote: RemoteModel
    records: dict[uuid.UUID, list[str]]
    """The texts of each write, as its author knows them."""

    def one_write_is_active(self, writes: list[WriteIntent]) -> None:
        assert sum(write.state in ACTIVE_STATES for write in writes) <= 1

    def work_is_not_stranded(self, writes: list[WriteIntent], session: ConversationSession) -> None:
        head = next((write for write in writes if not write.settled), None)
        if head is not None and head.state != WriteState.AMBIGUOUS:
            assert session.wake_at is not None

    def nothing_from_before_a_clear_is_there(self, writes: list[WriteIntent], session: ConversationSession) -> None:
        present = set(self.remote.texts(session.conversation_id))
        for write in writes:
            if write.sequence < last_clear(writes):
                assert not present & set(self.records[write.pk])

    def chunks_agree_with_their_write(self, writes: list[WriteIntent]) -> None:
        chunks: dict[uuid.UUID, list[tuple[str, int]]] = {write.pk: [] for write in writes}
        rows = WriteChunk.objects.filter(write__in=chunks).order_by("first_item")
        skipping = {write.pk for write in writes if write.on_refusal == RefusalPolicy.SKIP}
        for write_id, state, items in rows.values_list("write_id", "state", "item_count"):
            if state != WriteState.REFUSED or write_id not in skipping:
                chunks[write_id].append((state, items))
        for write in writes:
            saved = [items for state, items in chunks[write.pk] if state == WriteState.SAVED]
            states = [state for state, _ in chunks[write.pk]]
            assert states[: len(saved)] == [WriteState.SAVED] * len(saved)
            rolled_back = write.state == WriteState.CANCELLED and write.resolution == Resolution.ROLLBACK
            if write.kind == WriteKind.CLEAR:  # one that erases counts what it deletes
                continue
            assert write.items_saved == (0 if rolled_back else sum(saved))
            first, others = states[len(saved) : len(saved) + 1], set(states[len(saved) + 1 :])
            assert set(first) <= FIRST_UNSAVED[WriteState(write.state)]
            assert others <= OTHERS_UNSAVED[WriteState(write.state)]


def last_clear(writes: list[WriteIntent]) -> int:
    """The sequence of the last clear that took effect."""
    cleared = [write.sequence for write in writes if (write.kind, write.state) == (WriteKind.CLEAR, WriteState.SAVED)]
    return max(cleared, default=0)
