"""What each history must be once everything is quiet."""

from __future__ import annotations

import uuid

from convsessions import operations
from convsessions.models import ConversationSession, WriteIntent
from convsessions.states import CancelCause, Resolution, Verdict, WriteKind, WriteState

from .invariants import last_clear
from .remote_model import RemoteModel

FOREIGN = {"type": "message", "role": "user", "content": "foreign 0"}
DECIDED = {Verdict.SAVED, Verdict.ABSENT}


class Expectations:
    remote: RemoteModel
    sessions: list[uuid.UUID]
    records: dict[uuid.UUID, list[str]]
    earlier: list[tuple[uuid.UUID, int, list[str]]]
    """What of a write was saved before it was refused and tried again: the write, its sequence then, the texts."""
    disturbed: set[int]
    """Sessions with a foreign writer or a request that was applied twice: only these may need a person."""
    deleted_by_others: set[str | None]
    adopted: bool

    def session(self, index: int) -> ConversationSession:
        return ConversationSession.objects.get(pk=self.sessions[index])

    def writes(self, index: int) -> list[WriteIntent]:
        return list(WriteIntent.objects.filter(session_id=self.sessions[index]).order_by("sequence"))

    def check_history(self, index: int) -> None:
        expected, undefined = self.expected(index)
        present = self.remote.texts(self.session(index).conversation_id)
        others = undefined | self.deleted_by_others | {text for text in present if text.startswith("foreign")}
        assert [text for text in present if text not in others] == [text for text in expected if text not in others]
        session = self.session(index)
        assert self.remote.metadata.get(session.conversation_id, session.metadata) == session.metadata
        if index not in self.disturbed:
            assert not operations.verify_session(self.sessions[index])

    def expected(self, index: int) -> tuple[list[str], set[str]]:
        """The texts that the history must hold, in order; and those of which the journal says that it is not known."""
        cleared = last_clear(self.writes(index))
        texts = [FOREIGN["content"]] if index == 0 and self.adopted and not cleared else []
        undefined: set[str] = set()
        for sequence, write, given in self.parts(index):
            if sequence <= cleared:
                assert write.settled
            elif write.kind == WriteKind.APPEND:
                texts += given
                if self.left_by_an_operator(write) or self.left_to_a_clear(write):
                    undefined |= set(self.records[write.pk])
            elif write.kind == WriteKind.POP and write.state == WriteState.SAVED:
                self.check_pop(write, texts, index)
        return texts, undefined

    def parts(self, index: int) -> list[tuple[int, WriteIntent, list[str]]]:
        """Each write, with what of it took effect at which place in the order: (sequence, write, its saved texts)."""
        parts: list[tuple[int, WriteIntent, list[str]]] = []
        for write in self.writes(index):
            before = [(sequence, texts) for of, sequence, texts in self.earlier if of == write.pk]
            told = sum(len(texts) for _, texts in before)
            rolled_back = write.resolution == Resolution.ROLLBACK
            parts += [(sequence, write, [] if rolled_back else texts) for sequence, texts in before]
            parts.append((write.sequence, write, self.taken(write)[told : write.items_saved]))
        return sorted(parts, key=lambda part: part[0])

    def taken(self, write: WriteIntent) -> list[str]:
        """The texts of `write` without those that were skipped, each of which the API had said no to."""
        texts = self.records[write.pk]
        skipped = {texts[one["item"]] for one in write.skipped}
        assert skipped <= self.remote.refused
        return [text for text in texts if text not in skipped]

    def check_pop(self, write: WriteIntent, texts: list[str], index: int) -> None:
        popped = write.popped and write.popped["content"]
        was_refused = any(of == write.pk for of, _, _ in self.earlier)  # then it keeps the item that it had found
        if index not in self.disturbed and not was_refused:
            assert popped == (texts[-1] if texts else None)
        if popped in texts:
            texts.remove(popped)

    def left_to_a_clear(self, write: WriteIntent) -> bool:
        """Nothing holds up a clear for long; where it is cancelled after all, the last evidence says what is open."""
        last = write.reconciliations.last()
        return write.cancel_cause == CancelCause.CLEAR and last is not None and last.verdict not in DECIDED

    def left_by_an_operator(self, write: WriteIntent) -> bool:
        decided = set(write.reconciliations.exclude(resolution="").values_list("resolution", flat=True))
        return bool(decided & {Resolution.ACCEPT, Resolution.RESEND, Resolution.ABANDON})
