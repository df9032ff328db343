"""The real protocol and the real journal against a model of the remote, in simulated time.

A Hypothesis state machine lets authors record writes, workers take single steps, stall, crash and come back, requests
fail in every way, foreign writers interfere and operators decide. Whatever it does, the invariants hold after each
step; and once all faults are healed and everything is quiet, each remote history is what was accepted.
"""

from __future__ import annotations

import copy
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import pytest
from django.core import serializers
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from convsessions import operations
from convsessions.delivery import drivers, protocol
from convsessions.delivery.protocol import Ending, Report
from convsessions.delivery.settling import MAX_SENDS
from convsessions.exceptions import IllegalMove
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession, Reconciliation, RequestAttempt, WriteChunk, WriteIntent
from convsessions.remote.calls import Pause
from convsessions.states import ACTIVE_STATES, CancelCause, RefusalPolicy, Resolution, Verdict, WriteKind, WriteState

from .profiles import STATEFUL
from .remote_model import BAD, Fault, RemoteModel
from .simulated_time import SimulatedTime

SETTINGS = {
    "REQUEST_TIMEOUT": 1.0,
    "LEASE_GRACE": 1.0,
    "SETTLE_SECONDS": 0.5,
    "DELIVERY_BUDGET": 20.0,
    "RETRY_BACKOFF": (0.1, 2.0),
    "CHUNK_ITEMS": 3,
    "DISPATCHER": f"{__name__}.ring",
    "CLIENT_FACTORY": f"{__name__}.no_client",
}
LEASE = 2.01
SESSIONS = 2
rung: list[str] = []
happened: Counter[str] = Counter()


def ring(session_id: str) -> None:
    rung.append(session_id)


def no_client(session: Any) -> None:
    """`drivers.perform` is the model's here."""


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


FOREIGN = {"type": "message", "role": "user", "content": "foreign 0"}
FAULTS = st.sampled_from(Fault)
FEW_FAULTS = st.lists(st.just(Fault.NONE) | FAULTS, min_size=1, max_size=12)
ONE_OF = st.integers(0, 9)
"""Which one of those that there are, modulo their number."""
SESSION = st.integers(0, SESSIONS - 1)
KINDS = st.sampled_from(["append"] * 7 + ["pop"] * 2 + ["clear", "erase", "metadata"])
ITEMS = st.integers(1, 12) | st.integers(1, 45)
BAD_ITEMS = st.just(frozenset[int]()) | st.frozensets(st.integers(0, 12), max_size=3)
POLICIES = st.sampled_from(RefusalPolicy)


class Protocol(RuleBasedStateMachine):
    monkeypatch: pytest.MonkeyPatch

    @initialize(adopted=st.booleans(), others=st.booleans(), items=ITEMS)
    def begin(self, adopted: bool, others: bool, items: int) -> None:
        self.time = SimulatedTime()
        self.time.install(self.monkeypatch)
        self.remote = RemoteModel(lambda: self.time.seconds, self.time.spend, SETTINGS["SETTLE_SECONDS"])
        self.monkeypatch.setattr(drivers, "perform", lambda request, client: self.remote.perform(request))
        self.remote.conversations["conv_adopted"] = [{**FOREIGN, "id": "msg_0"}]
        first = operations.create_session(conversation_id="conv_adopted" if adopted else None)
        self.sessions = [first.pk, *(operations.create_session().pk for _ in range(1, SESSIONS))]
        self.adopted, self.others = adopted, others
        self.workers: list[Worker] = []
        self.records: dict[uuid.UUID, list[str]] = {}
        """The texts of each write, as its author knows them."""
        self.earlier: list[tuple[uuid.UUID, int, list[str]]] = []
        """What of a write was saved before it was refused and tried again: the write, its sequence then, the texts."""
        self.disturbed: set[int] = set()
        """Sessions with a foreign writer or a request that was applied twice: only these may need a person."""
        self.deleted_by_others: set[str | None] = set()
        self.count = 0
        self.seen = Seen()
        rung.clear()
        for index in range(SESSIONS):
            self.record_write(index, "append", items)

    def session(self, index: int) -> ConversationSession:
        return ConversationSession.objects.get(pk=self.sessions[index])

    def writes(self, index: int) -> list[WriteIntent]:
        return list(WriteIntent.objects.filter(session_id=self.sessions[index]).order_by("sequence"))

    # -- authors -----------------------------------------------------------------------------------------------------

    @rule(which=SESSION, kind=KINDS, items=ITEMS, bad=BAD_ITEMS, policy=POLICIES)
    def record_write(
        self, which: int, kind: str, items: int, bad: Collection[int] = (), policy: str = RefusalPolicy.STOP
    ) -> None:
        """`bad`: positions of items that the API does not take."""
        session_id, texts = self.sessions[which], []
        if kind == "append":
            self.count += 1
            texts = [f"{self.count}.{index}{BAD if index in bad else ''}" for index in range(items)]
            messages = [{"type": "message", "role": "user", "content": text} for text in texts]
            write = operations.append_items(session_id, messages, on_refusal=policy)
        elif kind == "metadata":
            self.count += 1
            write = operations.update_session(session_id, metadata={"count": str(self.count)}).write
        else:
            act = operations.pop_item if kind == "pop" else operations.clear_session
            write = act(session_id, **({"erase": True} if kind == "erase" else {}))
        self.records[write.pk] = texts

    @precondition(lambda self: self.seen.open)
    @rule(which=ONE_OF, act=st.sampled_from([operations.cancel_write, operations.retry_write]))
    def author_intervenes(self, which: int, act: Callable[[uuid.UUID], WriteIntent]) -> None:
        write = self.seen.open[which % len(self.seen.open)]
        if write.state == WriteState.AMBIGUOUS:
            with pytest.raises(IllegalMove):
                act(write.pk)
        else:
            act(write.pk)

    @precondition(lambda self: self.seen.refused)
    @rule(which=ONE_OF)
    def refused_write_is_tried_again(self, which: int) -> None:
        """The rest of it comes after all that was recorded meanwhile."""
        write = self.seen.refused[which % len(self.seen.refused)]
        is_cleared = write.generation != write.session.generation or any(
            other.kind == WriteKind.CLEAR and other.session_id == write.session_id for other in self.seen.open
        )
        if write.generation is not None and is_cleared:
            with pytest.raises(IllegalMove):
                operations.retry_write(write.pk)
            return
        told = sum(len(texts) for of, _, texts in self.earlier if of == write.pk)
        self.earlier.append((write.pk, write.sequence, self.taken(write)[told : write.items_saved]))
        operations.retry_write(write.pk)

    # -- workers -----------------------------------------------------------------------------------------------------

    @rule(which=SESSION, budget=st.sampled_from([20.0, 0.0]), faults=FEW_FAULTS, takes_over=st.booleans())
    def worker_begins(self, which: int, budget: float, faults: list[Fault], takes_over: bool) -> None:
        """After `faults` it stalls in the middle of its work. `takes_over`: from one whose lease ran out."""
        if takes_over:
            self.time_passes(LEASE)
        self.work(self.begin_work(which, budget), faults)

    def begin_work(self, which: int, budget: float) -> Worker:
        worker = Worker(self.sessions[which], protocol.deliver(self.sessions[which], using=alias(), budget=budget))
        worker.send(None)
        if worker.report is None:
            worker.token = self.session(which).lease_token
            self.workers.append(worker)
        return worker

    @precondition(lambda self: self.workers)
    @rule(which=ONE_OF, fault=FAULTS)
    def request_is_performed(self, which: int, fault: Fault) -> None:
        self.perform(self.workers[which % len(self.workers)], fault)

    @precondition(lambda self: self.workers)
    @rule(which=ONE_OF, faults=FEW_FAULTS)
    def worker_goes_on(self, which: int, faults: list[Fault]) -> None:
        """It may have stalled so long that it lost its lease."""
        self.work(self.workers[which % len(self.workers)], faults)

    @precondition(lambda self: self.seen.overtaken)
    @rule(which=ONE_OF, fault=FAULTS)
    def overtaken_worker_comes_back(self, which: int, fault: Fault) -> None:
        """Its request may not have been sent yet."""
        worker = self.seen.overtaken[which % len(self.seen.overtaken)]
        self.perform(worker, fault)
        self.go_on(worker, fault)

    def holds_lease(self, worker: Worker) -> bool:
        return self.session(self.sessions.index(worker.session_id)).lease_token == worker.token

    @precondition(lambda self: self.workers)
    @rule(which=ONE_OF)
    def worker_crashes(self, which: int) -> None:
        self.workers.pop(which % len(self.workers)).delivery.close()

    @rule(seconds=st.sampled_from([0.05, 0.4, 1.2, LEASE, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.time.spend(seconds)
        self.remote.land()

    @rule()
    def sweep(self) -> None:
        self.deliver_due()

    def work(self, worker: Worker, faults: list[Fault]) -> None:
        for fault in faults:
            if worker.report is None:
                self.go_on(worker, fault)

    def perform(self, worker: Worker, fault: Fault) -> None:
        if worker.performed:
            return
        worker.performed = True
        if isinstance(worker.request, Pause):
            self.time.spend(worker.request.seconds)
            return
        worker.outcome = self.remote.perform(worker.request, fault)
        if fault is Fault.TWICE and worker.request.changes_remote:
            self.disturbed.add(self.sessions.index(worker.session_id))

    def go_on(self, worker: Worker, fault: Fault) -> None:
        self.perform(worker, fault)
        if self.holds_lease(worker):
            worker.send(worker.outcome)
        else:
            self.come_back_too_late(worker)
        if worker.report is not None:
            self.workers.remove(worker)

    def come_back_too_late(self, worker: Worker) -> None:
        before, remote_before = self.rows(worker.session_id), copy.deepcopy(self.remote.conversations)
        worker.send(worker.outcome)
        while worker.report is None:  # it may read on for a while, until it looks at its lease
            assert isinstance(worker.request, Pause) or not worker.request.changes_remote
            self.perform(worker, Fault.NONE)
            worker.send(worker.outcome)
        happened["a worker came back too late"] += 1
        assert worker.report.ending is Ending.LEASE_LOST
        assert self.rows(worker.session_id) == before
        assert self.remote.conversations == remote_before

    def rows(self, session_id: Any) -> str:
        """Every row of a session, as text."""
        return serializers.serialize(
            "json",
            [
                *ConversationSession.objects.filter(pk=session_id),
                *WriteIntent.objects.filter(session_id=session_id),
                *WriteChunk.objects.filter(write__session_id=session_id),
                *RequestAttempt.objects.filter(write__session_id=session_id),
                *Reconciliation.objects.filter(write__session_id=session_id),
            ],
        )

    def deliver_due(self) -> None:
        """What the queue does after a sweep, without faults."""
        rung.clear()
        operations.sweep()
        for which in [index for index in range(SESSIONS) if str(self.sessions[index]) in rung]:
            worker = self.begin_work(which, 20.0)
            while worker.report is None:
                self.go_on(worker, Fault.NONE)

    # -- others ------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.others and self.seen.conversations)
    @rule(which=ONE_OF, position=st.none() | st.integers(0, 99))
    def somebody_else_writes(self, which: int, position: int | None) -> None:
        """Appends, or deletes the item at `position`."""
        conversation_id, index = self.seen.conversations[which % len(self.seen.conversations)]
        self.disturbed.add(index)
        if position is None:
            self.count += 1
            self.remote.append_foreign(conversation_id, f"foreign {self.count}")
        else:
            self.deleted_by_others.add(self.remote.delete_foreign(conversation_id, position))

    @precondition(lambda self: self.seen.ambiguous)
    @rule(which=ONE_OF, resolution=st.sampled_from(Resolution))
    def operator_decides(self, which: int, resolution: Resolution) -> None:
        write = self.seen.ambiguous[which % len(self.seen.ambiguous)]
        inspection = operations.inspect_write(write.pk)
        if resolution in inspection.possible:
            operations.resolve_write(write.pk, resolution, reason="because", evidence=inspection.token)

    # -- what always holds ---------------------------------------------------------------------------------------------

    @invariant()
    def what_always_holds(self) -> None:
        self.seen = Seen()
        for index in range(SESSIONS):
            writes, session = self.writes(index), self.session(index)
            self.seen.note(index, session, writes, self)
            self.one_write_is_active(writes)
            self.work_is_not_stranded(writes, session)
            self.nothing_from_before_a_clear_is_there(writes, session)
            self.chunks_agree_with_their_write(writes)

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

    # -- the end -------------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        if not hasattr(self, "records"):
            return
        try:
            self.tell_what_happened()
            self.heal()
            for index in range(SESSIONS):
                self.check_history(index)
        finally:
            for model in (Reconciliation, RequestAttempt, WriteChunk, WriteIntent, ConversationSession):
                model.objects.all()._raw_delete(alias())

    def tell_what_happened(self) -> None:
        """Counted, and printed at the end (pytest -s): how far the examples get."""
        happened["examples"] += 1
        for kind, state in sorted(set(WriteIntent.objects.values_list("kind", "state"))):
            happened[f"{kind} {state}"] += 1
        for outcome, code in sorted(set(RequestAttempt.objects.exclude(outcome=None).values_list("outcome", "code"))):
            happened[f"request {outcome} {code}"] += 1
        for verdict, resolution in sorted(set(Reconciliation.objects.values_list("verdict", "resolution"))):
            happened[f"verdict {verdict} {resolution}"] += 1

    def heal(self) -> None:
        """No more faults; an honest operator. Only what sweeps find is delivered."""
        for _ in range(60):
            self.time.spend(70.0)
            self.deliver_due()
            is_open = [write for index in range(SESSIONS) for write in self.writes(index) if not write.settled]
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


def last_clear(writes: list[WriteIntent]) -> int:
    """The sequence of the last clear that took effect."""
    cleared = [write.sequence for write in writes if (write.kind, write.state) == (WriteKind.CLEAR, WriteState.SAVED)]
    return max(cleared, default=0)


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
DECIDED = {Verdict.SAVED, Verdict.ABSENT}
HONEST = {
    Verdict.SAVED: Resolution.ACCEPT,
    Verdict.ABSENT: Resolution.RESEND,
    Verdict.PARTIAL: Resolution.ROLLBACK,
    Verdict.DUPLICATED: Resolution.REMOVE_DUPLICATES,
    Verdict.CONTESTED: Resolution.ROLLBACK,
    Verdict.UNDECIDED: Resolution.RECHECK,
}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_whatever_fails_each_history_is_what_was_accepted(quick, monkeypatch, caplog):
    quick.clear()
    quick.update(SETTINGS)
    caplog.set_level(logging.ERROR, logger="convsessions")
    Protocol.monkeypatch = monkeypatch
    try:
        run_state_machine_as_test(Protocol, settings=STATEFUL)
    finally:
        print("", *(f"{count:7d} {what}" for what, count in sorted(happened.items())), sep="\n")
