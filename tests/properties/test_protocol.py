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
from convsessions.delivery.protocol import Ending
from convsessions.exceptions import IllegalMove
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession, Reconciliation, RequestAttempt, WriteChunk, WriteIntent
from convsessions.remote.calls import Pause
from convsessions.states import RefusalPolicy, Resolution, WriteKind, WriteState

from .expectations import FOREIGN
from .healing import Healing
from .invariants import Invariants
from .profiles import STATEFUL
from .remote_model import BAD, Fault, RemoteModel
from .simulated_time import SimulatedTime
from .workers import Seen, Worker

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


FAULTS = st.sampled_from(Fault)
FEW_FAULTS = st.lists(st.just(Fault.NONE) | FAULTS, min_size=1, max_size=12)
ONE_OF = st.integers(0, 9)
"""Which one of those that there are, modulo their number."""
SESSION = st.integers(0, SESSIONS - 1)
KINDS = st.sampled_from(["append"] * 7 + ["pop"] * 2 + ["clear", "erase", "metadata"])
ITEMS = st.integers(1, 12) | st.integers(1, 45)
BAD_ITEMS = st.just(frozenset[int]()) | st.frozensets(st.integers(0, 12), max_size=3)
POLICIES = st.sampled_from(RefusalPolicy)


class Protocol(Invariants, Healing, RuleBasedStateMachine):
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
        self.records, self.earlier, self.disturbed, self.deleted_by_others = {}, [], set(), set()
        self.count = 0
        self.seen = Seen()
        rung.clear()
        for index in range(SESSIONS):
            self.record_write(index, "append", items)

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
