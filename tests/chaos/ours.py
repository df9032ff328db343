"""A chaos run of convsessions: authors, faults, kills, healing, quiet, and the check of every conversation."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from convsessions import operations
from convsessions.models import ConversationSession, Reconciliation, RequestAttempt, WriteIntent
from convsessions.sandbox.testing import SandboxProcess
from convsessions.states import OutcomeKind, Verdict

from .history import FOREIGN, Tally, expected_texts
from .plan import UNDECIDABLE_FAULTS, Act, Fault, Timings, acts, faults
from .workers import Workers

LANES = {"append_items": 6, "list_items": 2, "create_conversation": 2, "delete_item": 1, "delete_conversation": 1}
"""Faults that are armed at the same time, per operation."""


@dataclass(frozen=True, slots=True)
class Setup:
    sessions: int
    faults: int
    kills: int
    seed: int
    writes: int = 4
    workers: int = 4
    undecidable: bool = False
    quiet_within: float = 900.0


class Storm(threading.Thread):
    """Arms the planned faults, a few at a time, until all have struck or it is told to stop."""

    def __init__(self, sandbox: SandboxProcess, setup: Setup, timings: Timings) -> None:
        super().__init__(daemon=True)
        self.sandbox, self.stopped = sandbox, threading.Event()
        self.planned: dict[str, list[Fault]] = {operation: [] for operation in LANES}
        for fault in faults(setup.seed, setup.faults, timings, undecidable=setup.undecidable):
            self.planned[fault["operation"]].append(fault)

    def run(self) -> None:
        while any(self.planned.values()) and not self.stopped.wait(0.05):
            armed = Counter(fault["operation"] for fault in self.sandbox.faults() if fault["times"] != 0)
            for operation, queue in self.planned.items():
                for _ in range(min(LANES[operation] - armed[operation], len(queue))):
                    self.sandbox.fault(**queue.pop(0))

    def stop(self) -> None:
        self.stopped.set()
        self.join()
        self.sandbox.clear_faults()


def record(plan: list[Act]) -> list[ConversationSession]:
    """Do what the authors do; every call returns, whatever happens to the API and to the workers."""
    sessions = [operations.create_session() for _ in range(1 + max(act.session for act in plan))]
    for act in plan:
        session_id = sessions[act.session].pk
        if act.kind == "append":
            operations.append_items(session_id, act.items, on_refusal=act.policy)
        elif act.kind == "pop":
            operations.pop_item(session_id)
        else:
            operations.clear_session(session_id, erase=act.erase)
    return sessions


def run(
    setup: Setup, sandbox: SandboxProcess, environment: Mapping[str, str], timings: Timings, log: Path
) -> dict[str, Any]:
    """One chaos run on the database that Django is configured for; returns its figures."""
    began = time.monotonic()
    storm = Storm(sandbox, setup, timings)
    with Workers(setup.workers, environment, log, setup.seed) as workers:
        storm.start()
        killer = workers.killing(setup.kills, pause=1.2)
        killer.start()
        plan = acts(setup.seed, setup.sessions, writes=setup.writes)
        sessions = record(plan)
        while storm.is_alive() and unsettled():
            operations.sweep()
            time.sleep(0.2)
        killer.join()
        storm.stop()
        healed = time.monotonic()
        while unsettled():
            assert time.monotonic() - healed < setup.quiet_within, "the journal does not come to rest"
            operations.sweep()
            time.sleep(0.2)
    tally = check(sandbox, sessions)
    check_refusals(plan, sessions)
    struck = sum(1 for row in sandbox.requests() if row["fault"])
    return {
        **asdict(tally),
        "sessions": setup.sessions,
        "faults": struck,
        "kills": workers.kills,
        **decisions(),
        "seconds_to_quiet": round(time.monotonic() - healed, 1),
        "seconds": round(time.monotonic() - began, 1),
    }


def unsettled() -> int:
    """Open writes that are not waiting for a person."""
    blocked = WriteIntent.objects.filter(state="ambiguous").values("session")
    return WriteIntent.objects.open().exclude(session__in=blocked).count()


def check(sandbox: SandboxProcess, sessions: list[ConversationSession]) -> Tally:
    tally = Tally()
    meddled = {row["conversation"] for row in sandbox.requests() if row["fault"] in UNDECIDABLE_FAULTS}
    for number, session in enumerate(sessions):
        session.refresh_from_db()
        stored = sandbox.items(session.conversation_id) if session.conversation_id else []
        texts = [item["content"][0]["text"] for item in stored]
        tally.add(
            f"session {number}",
            expected_texts(session),
            [text for text in texts if text != FOREIGN],
            asked=session.writes.filter(state="ambiguous").exists(),
            undecidable=session.conversation_id in meddled,
        )
    return tally


def check_refusals(plan: list[Act], sessions: list[ConversationSession]) -> None:
    """Whoever wished to skip lost what the API refused and nothing else; whoever did not, lost what came after it."""
    for number, session in enumerate(sessions):
        ours = [act for act in plan if act.session == number]
        for act, write in zip(ours, session.writes.order_by("sequence"), strict=True):
            if write.state not in {"saved", "refused"} or not act.bad:
                continue
            skips = act.policy == "skip" and len(act.bad) < len(act.texts)
            assert write.state == ("saved" if skips else "refused")
            if skips:
                assert {one["item"] for one in write.skipped} == act.bad
                assert write.items_saved == len(act.texts) - len(act.bad)
            else:
                assert write.items_saved <= min(act.bad)


def decisions() -> dict[str, int]:
    """How the unknown outcomes of appends were decided."""
    unknown = RequestAttempt.objects.filter(operation="append_items", outcome=OutcomeKind.UNKNOWN).count()
    by_evidence = Reconciliation.objects.filter(chunk__isnull=False, verdict__in=(Verdict.SAVED, Verdict.ABSENT))
    return {
        "unknown_outcomes": unknown,
        "decided_by_evidence": by_evidence.count(),
        "writes_for_a_person": WriteIntent.objects.filter(state="ambiguous").count(),
        "writes": WriteIntent.objects.count(),
    }
