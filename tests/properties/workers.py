"""Workers of the state machine, and what it has seen of all that it may choose from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from convsessions.delivery.protocol import Report
from convsessions.models import ConversationSession, WriteIntent
from convsessions.states import WriteState

if TYPE_CHECKING:
    from .test_protocol import Protocol


@dataclass
class Worker:
    """One worker: its generator, what it asked for last, and the outcome that it has not been told yet."""

    session_id: Any
    delivery: Any
    token: Any = None
    request: Any = None
    outcome: Any = None
    performed: bool = False
    report: Report | None = None

    def send(self, outcome: Any) -> None:
        self.performed, self.outcome = False, None
        try:
            self.request = self.delivery.send(outcome)
        except StopIteration as end:
            self.request, self.report = None, end.value


class Seen:
    """What there is to choose from for the next step: noted once a step, for the preconditions ask often."""

    def __init__(self) -> None:
        self.open: list[WriteIntent] = []
        self.ambiguous: list[WriteIntent] = []
        self.refused: list[WriteIntent] = []
        self.conversations: list[tuple[str, int]] = []
        self.overtaken: list[Worker] = []

    def note(self, index: int, session: ConversationSession, writes: list[WriteIntent], machine: Protocol) -> None:
        for write in writes:
            write.session = session
        self.open += [write for write in writes if not write.settled]
        self.ambiguous += [write for write in writes if write.state == WriteState.AMBIGUOUS]
        self.refused += [write for write in writes if write.state == WriteState.REFUSED]
        if session.conversation_id in machine.remote.conversations:
            self.conversations.append((session.conversation_id, index))
        workers = [worker for worker in machine.workers if worker.session_id == session.pk]
        self.overtaken += [worker for worker in workers if worker.token != session.lease_token]
