"""From an unknown outcome to a finding: when to read, how often, and when absence counts.

Presence is evidence at once. Absence is evidence only after the settle delay has passed since the request's deadline,
since a slow server may still apply it, and needs two reads. Sans-I/O, no database.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass, field, replace

from convsessions.remote import clock
from convsessions.remote.calls import Pause, RemoteCall
from convsessions.remote.outcomes import Outcome
from convsessions.states import Verdict

from .matching import Finding, Item, find_runs, match, run_at
from .reading import Deadline, History, read_history

ABSENT_READS = 2
"""One read could come from a replica that lags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What became of a chunk: its `sent` items, looked for in `conversation_id` after `anchor`.

    `bound`, `claimed`, `rivals`: see `matching.match`. `absence_from`: when (by `clock.now`) absence begins to count.
    """

    conversation_id: str
    anchor: str
    sent: Sequence[Item] = field(repr=False)
    bound: Collection[str] = field(default=(), repr=False)
    claimed: Collection[str] = ()
    rivals: Sequence[Sequence[Item]] = field(default=(), repr=False)
    absence_from: float = 0.0


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The history could not be read to its end."""

    problem: Outcome


@dataclass(frozen=True, slots=True)
class TooEarly:
    """Not found so far, but a late request may still land for `seconds`."""

    seconds: float


Answer = Finding | Unreadable | TooEarly
Inquiry = Generator[RemoteCall | Pause, Outcome | None, Answer]


@dataclass(slots=True)
class Seen:
    """The history in which a run was found last, for the next question that looks from the same item on.

    Presence in it is evidence for whatever was requested before it was read; to be forgotten before a request is made.
    """

    conversation_id: str = ""
    anchor: str = ""
    history: History | None = field(default=None, repr=False)

    def forget(self) -> None:
        self.history = None

    def find(self, question: Question) -> Finding | None:
        """The run of `question`, if it is there exactly once."""
        if self.history is None or (self.conversation_id, self.anchor) != (question.conversation_id, question.anchor):
            return None
        finding = judge(question, self.history)
        return finding if finding.verdict is Verdict.SAVED else None


def decide(question: Question, next_deadline: Deadline, patience: Callable[[], float], seen: Seen) -> Inquiry:
    """Read until the evidence decides, waiting for at most `patience()` seconds in all for late requests.

    Nothing is read where it is found in what was `seen`; what is found is kept there.
    """
    if (known := seen.find(question)) is not None:
        return known
    absent_reads = 0
    while True:
        began = clock.now()
        history = yield from read_history(question.conversation_id, question.anchor, next_deadline)
        if history.problem is not None:
            return Unreadable(history.problem)
        finding = judge(question, history)
        if finding.verdict is Verdict.SAVED:
            seen.conversation_id, seen.anchor, seen.history = question.conversation_id, question.anchor, history
            return finding
        early = question.absence_from - began
        if early > 0:
            early = question.absence_from - clock.now()
            if early > patience():
                return TooEarly(early)
            yield Pause(max(early, 0.0))
            continue
        absent_reads += 1
        if finding.verdict is not Verdict.ABSENT or absent_reads >= ABSENT_READS:
            return finding


def judge(question: Question, history: History) -> Finding:
    """What a complete `history` says, wherever it had to be read from."""
    items = history.items
    last_bound = max((index for index, item in enumerate(items) if item["id"] in question.bound), default=-1)
    finding = match(
        question.sent,
        items[last_bound + 1 :],
        bound=question.bound,
        claimed=question.claimed,
        rivals=question.rivals,
    )
    if history.anchor_gone and last_bound < 0 and finding.verdict is Verdict.SAVED:
        # Nothing of ours marks where to look any more: what was found may be older than the request.
        finding = replace(finding, verdict=Verdict.CONTESTED)
    details = {
        "anchor": question.anchor,
        "anchor_gone": history.anchor_gone,
        "pages": history.pages,
        "items_read": len(items),
        "last_id": items[-1]["id"] if items else "",
    }
    return replace(finding, details=details)


def find_copies(
    originals: Sequence[tuple[Sequence[Item], Sequence[str]]], history: History, bound: Collection[str]
) -> Finding:
    """Further copies of saved chunks in a complete `history`: *duplicated* with every run, or *saved*.

    `originals`: the items of each chunk and the ids bound to it; `bound`: all ids bound to saved writes.
    """
    free = [item for item in history.items if item["id"] not in bound]
    runs: list[tuple[str, ...]] = []
    extra: list[str] = []
    for items, ids in originals:
        copies = [run_at(start, len(items), free) for start in find_runs(items, free)]
        if copies:
            runs += [*([tuple(ids)] if ids else []), *copies]
            extra += [one for copy in copies for one in copy]
    details = {"pages": history.pages, "items_read": len(history.items), "extra": sorted(set(extra), key=extra.index)}
    return Finding(Verdict.DUPLICATED if runs else Verdict.SAVED, runs=tuple(runs), details=details)
