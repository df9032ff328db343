"""What a complete read of the remote history says about one chunk. Pure functions.

The history is what the conversation holds *after the chunk's anchor*, in order. Items whose ids are bound to saved
writes are not looked at; neither can they be part of a run. A *run* is the ordered, contiguous appearance of all the
chunk's items: the API stores a batch whole, in order, or not at all (recorded).

| found                                                        | verdict    |
|--------------------------------------------------------------|------------|
| the whole run exactly once                                   | saved      |
| the run twice or more, apart from each other                 | duplicated |
| runs that overlap, or that a *rival* explains as well        | contested  |
| no run, but a part of it, or an altered copy                 | partial    |
| none of it                                                   | absent     |

A rival is another chunk of the session, of which a request may still have been applied unnoticed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from convsessions.items.comparison import contained, core
from convsessions.states import Verdict

Item = dict[str, Any]
Run = tuple[str, ...]

MAX_IDS_KEPT = 200
"""Ids kept per kind of evidence: enough for a person, bounded for the row."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict and its evidence: ids only.

    `runs`: the ids of every whole run; `parts`: items that look like ours but are in no run; `foreign`: the rest.
    """

    verdict: Verdict
    runs: tuple[Run, ...] = ()
    parts: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ids(self) -> Run:
        """The ids of the first run."""
        return self.runs[0] if self.runs else ()

    @property
    def extra_ids(self) -> tuple[str, ...]:
        """The ids of every run but the first. Not of the first as well: one id can stand twice in a list (recorded)."""
        return tuple(dict.fromkeys(one for run in self.runs[1:] for one in run if one not in self.ids))

    def evidence(self) -> dict[str, Any]:
        """What is stored with a `Reconciliation`."""
        return {
            "runs": [list(run) for run in self.runs[:MAX_IDS_KEPT]],
            "extra": list(self.extra_ids),
            "parts": list(self.parts[:MAX_IDS_KEPT]),
            "foreign": list(self.foreign[:MAX_IDS_KEPT]),
            "foreign_count": len(self.foreign),
            **self.details,
        }


def match(
    sent: Sequence[Item],
    history: Sequence[Item],
    *,
    bound: Collection[str] = (),
    claimed: Collection[str] = (),
    rivals: Sequence[Sequence[Item]] = (),
) -> Finding:
    """Compare a chunk (`sent`, at least one item) with the `history` after its anchor (stored items with ids).

    `bound`: ids that belong to saved writes; `claimed`: ids that a reply gave to items of this chunk, whatever is
    stored under them; `rivals`: the items of each chunk that could explain a run as well.
    """
    free = [item for item in history if item["id"] not in bound]
    starts = find_runs(sent, free)
    covered = {start + offset for start in starts for offset in range(len(sent))}
    runs = tuple(run_at(start, len(sent), free) for start in _apart(starts, len(sent)))
    ours, our_ids = {core(item) for item in sent}, {item.get("id") for item in sent} | set(claimed)
    rest = [item for index, item in enumerate(free) if index not in covered]
    # Next to a whole run, an item that resembles ours proves nothing: people say "yes" more than once.
    # An id that we sent is ours whatever stands there: an id known from elsewhere brings its old content (recorded).
    resembling = [item["id"] for item in rest if core(item) in ours or item["id"] in our_ids]
    parts = () if starts else tuple(resembling)
    foreign = tuple(item["id"] for item in rest if item["id"] not in parts)
    verdict = _verdict(starts, runs, parts, contested=_contested(starts, covered, len(sent), free, rivals))
    return Finding(verdict, runs, parts, foreign)


def find_runs(sent: Sequence[Item], history: Sequence[Item]) -> list[int]:
    """Every position in `history` where all of `sent` stands, in order and without a gap; positions may overlap."""
    last_start = len(history) - len(sent)
    return [
        start
        for start in range(last_start + 1)
        if all(contained(item, history[start + offset]) for offset, item in enumerate(sent))
    ]


def run_at(start: int, length: int, history: Sequence[Item]) -> Run:
    """The ids of the `length` items from position `start` on."""
    return tuple(item["id"] for item in history[start : start + length])


def _apart(starts: Sequence[int], length: int) -> list[int]:
    """The positions from the left that do not overlap."""
    kept: list[int] = []
    for start in starts:
        if not kept or start >= kept[-1] + length:
            kept.append(start)
    return kept


def _contested(
    starts: Sequence[int], covered: Collection[int], length: int, free: Sequence[Item], rivals: Sequence[Sequence[Item]]
) -> bool:
    if len(_apart(starts, length)) != len(starts):
        return True
    for rival in rivals:
        for start in find_runs(rival, free):
            if any(start + offset in covered for offset in range(len(rival))):
                return True
    return False


def _verdict(starts: Sequence[int], runs: Sequence[Run], parts: Sequence[str], *, contested: bool) -> Verdict:
    if contested:
        return Verdict.CONTESTED
    if len(runs) > 1:
        return Verdict.DUPLICATED
    if starts:
        return Verdict.SAVED
    return Verdict.PARTIAL if parts else Verdict.ABSENT
