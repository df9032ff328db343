"""The end of every example: no more faults, an honest operator, and quiet."""

from __future__ import annotations

from typing import Any

from convsessions import operations
from convsessions.delivery.settling import MAX_SENDS
from convsessions.models import WriteIntent
from convsessions.states import Resolution, Verdict, WriteState

from .expectations import Expectations
from .simulated_time import SimulatedTime

HONEST = {
    Verdict.SAVED: Resolution.ACCEPT,
    Verdict.ABSENT: Resolution.RESEND,
    Verdict.PARTIAL: Resolution.ROLLBACK,
    Verdict.DUPLICATED: Resolution.REMOVE_DUPLICATES,
    Verdict.CONTESTED: Resolution.ROLLBACK,
    Verdict.UNDECIDED: Resolution.RECHECK,
}


class Healing(Expectations):
    time: SimulatedTime

    def deliver_due(self) -> None:
        """What the queue does after a sweep, without faults."""
        raise NotImplementedError

    def heal(self) -> None:
        """No more faults; an honest operator. Only what sweeps find is delivered."""
        for _ in range(60):
            self.time.spend(70.0)
            self.deliver_due()
            is_open = [
                write for index in range(len(self.sessions)) for write in self.writes(index) if not write.settled
            ]
            for write in is_open:
                if write.state == WriteState.AMBIGUOUS:
                    self.decide_honestly(write)
            if not is_open:
                return
        raise AssertionError("it never became quiet")

    def decide_honestly(self, write: WriteIntent) -> None:
        index = self.sessions.index(write.session_id)
        inspection = operations.inspect_write(write.pk)
        gave_up = any(chunk.attempts >= MAX_SENDS for chunk in write.chunks.all())
        assert index in self.disturbed or gave_up
        self.check_evidence(write, inspection)
        resolution = HONEST[Verdict(inspection.verdict)]
        if resolution not in inspection.possible:
            resolution = Resolution.ABANDON
        operations.resolve_write(write.pk, resolution, reason="honestly", evidence=inspection.token)

    def check_evidence(self, write: WriteIntent, inspection: Any) -> None:
        """The evidence shown to a person is what the remote holds."""
        chunk = write.chunks.filter(state=WriteState.AMBIGUOUS).first()
        if chunk is None:
            return
        ours = [item["content"] for item in chunk.items]
        there = self.remote.texts(self.session(self.sessions.index(write.session_id)).conversation_id)
        copies = sum(there[at : at + len(ours)] == ours for at in range(len(there)))
        assert len(inspection.evidence["runs"]) == copies
        assert (inspection.verdict == Verdict.ABSENT) == (not set(ours) & set(there))
