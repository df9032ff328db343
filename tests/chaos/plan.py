"""What a chaos run does, drawn from a seed: who writes what, and which faults strike."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

Fault = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds. A request that hangs outlives its timeout; what is applied late lands within the settle delay."""

    timeout: float = 1.5
    grace: float = 1.0
    settle: float = 1.0

    @property
    def hang(self) -> float:
        return self.timeout + self.settle / 4

    @property
    def late(self) -> float:
        return self.timeout * 0.8


APPEND_FAULTS = (
    "lost_before",
    "lost_after",
    "error_before",
    "error_after",
    "hang_before",
    "hang_after",
    "hang_lost",
    "late_apply",
    "truncated",
    "html",
    "html_before",
    "fewer_ids",
    "trickle",
    "rate_limited",
    "locked",
)
READ_FAULTS = ("read_error", "empty_page", "stuck_cursor", "lost_after", "html_before")
OTHER_FAULTS = ("lost_before", "lost_after", "error_before", "error_after", "html", "hang_after")
REFUSED = "refused"
"""How the text of an item begins that the API refuses, for it takes no fields that it does not know."""
UNDECIDABLE_FAULTS = ("twice", "foreign")
STATUSES = (408, 409, 500, 502, 503, 504)


def faults(seed: int, count: int, timings: Timings, *, undecidable: bool) -> Iterator[Fault]:
    """`count` faults in the order in which they are armed; each strikes once."""
    draw = random.Random(f"faults {seed}")
    for _ in range(count):
        operation = draw.choices(
            ("append_items", "list_items", "create_conversation", "delete_item", "delete_conversation"),
            (70, 12, 8, 5, 5),
        )[0]
        yield {**_fault(draw, operation, timings, undecidable), "operation": operation, "skip": draw.randrange(3)}


def _fault(draw: random.Random, operation: str, timings: Timings, undecidable: bool) -> Fault:
    if operation == "list_items":
        return {"kind": draw.choice(READ_FAULTS)}
    if operation != "append_items":
        kind = draw.choice(OTHER_FAULTS)
    elif undecidable and draw.random() < 0.04:
        kind = draw.choice(UNDECIDABLE_FAULTS)
    else:
        kind = draw.choice(APPEND_FAULTS)
    fault: Fault = {"kind": kind}
    if kind.startswith("error"):
        fault["status"] = draw.choice(STATUSES)
    if kind.startswith("hang"):
        fault["seconds"] = timings.hang
    if kind == "late_apply":
        fault["seconds"] = timings.late
    if kind == "trickle":
        fault["seconds"] = 0.2
    if kind == "rate_limited":
        fault["retry_after"] = "0.2"
    return fault


@dataclass(frozen=True, slots=True)
class Act:
    """One call of an author: `kind` append (with `texts`), pop or clear.

    `bad`: positions of items that the API refuses; `policy`: what is then to be done. `erase`: of a clear.
    """

    session: int
    kind: str
    texts: tuple[str, ...] = ()
    bad: frozenset[int] = frozenset()
    policy: str = "stop"
    erase: bool = False

    @property
    def items(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = [{"type": "message", "role": "user", "content": text} for text in self.texts]
        for position in self.bad:
            items[position] |= {"content": f"{REFUSED} {position}", "unheard_of": True}
        return items


def acts(seed: int, sessions: int, *, writes: int = 4, removals: bool = True, refusals: bool = True) -> list[Act]:
    """What the authors of all sessions do, mixed, each session's in its order: appends of 1 to 90 items, …"""
    draw, other = random.Random(f"acts {seed}"), random.Random(f"refusals {seed}")
    mixed: list[Act] = []
    for session in range(sessions):
        for number in range(writes):
            kind = draw.choices(("append", "pop", "clear"), (85, 10, 5))[0] if removals and number else "append"
            texts = _texts(draw, session, number) if kind == "append" else ()
            act = Act(session, kind, texts, erase=kind == "clear" and other.random() < 0.5)
            mixed.append(_with_refusals(other, act) if refusals and other.random() < 0.1 else act)
    order = list(range(sessions)) * writes
    draw.shuffle(order)
    queues = [[act for act in mixed if act.session == session] for session in range(sessions)]
    return [queues[session].pop(0) for session in order]


def _with_refusals(draw: random.Random, act: Act) -> Act:
    bad = frozenset(draw.choices(range(len(act.texts)), k=draw.randint(1, 3))) if act.texts else frozenset()
    return replace(act, bad=bad, policy=draw.choice(("stop", "skip", "skip")))


def _texts(draw: random.Random, session: int, number: int) -> tuple[str, ...]:
    """Mostly unlike any other text; every eighth is one that people say again and again."""
    return tuple(
        "yes" if draw.random() < 0.125 else f"s{session} w{number} i{index}" for index in range(draw.randint(1, 90))
    )
