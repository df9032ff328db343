"""The demo itself: append the transcript through a real worker, break things on the way, compare what became of it.

It runs in a process that has the demo's environment, and drives the sandbox and the worker of a `site.Site`.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from convsessions import operations
from convsessions.models import WriteIntent
from convsessions.states import WriteState

from .comparison import Comparison, compare
from .patience import DemoFailed
from .screen import Screen
from .site import Site
from .story import decided_by_evidence, story
from .transcript import transcript

LOSE_REPLY_OF = 3
KILL_DURING = 6
"""The append requests, counted from 1, that meet a fault."""
LATENCY = 0.25
"""Seconds that the sandbox takes for each request, as a real API would; a worker can be killed in them."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What ``--json`` prints. `requests`: of all kinds, as the sandbox counted them; `seconds`: from start to end."""

    items: int
    chunks: int
    requests: int
    duplicates: int
    lost: int
    in_order: bool
    reconciled: int
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def play(site: Site, *, began: float) -> tuple[Summary, Comparison]:
    """Append the transcript, with one lost reply and one killed worker. `began`: by time.monotonic()."""
    sent = transcript()
    _arm_faults(site)
    write = operations.append_items(operations.create_session(key="demo").pk, sent)
    chunks = write.chunks.count()
    site.screen.say(f"Recorded {len(sent)} items as one write of {chunks} chunks. The worker takes over from here.")
    site.screen.begin_bar(len(sent))
    _kill_in_the_middle(site, write)
    write = _await_saved(site, write)
    site.screen.end_bar()
    _tell(site.screen, write)
    found = compare(sent, site.sandbox.items(write.session.conversation_id or ""))
    summary = Summary(
        items=len(sent),
        chunks=chunks,
        requests=len(site.sandbox.requests()),
        duplicates=found.duplicates,
        lost=found.lost,
        in_order=found.in_order,
        reconciled=decided_by_evidence(write),
        seconds=round(time.monotonic() - began, 1),
    )
    _conclude(site.screen, summary, found)
    return summary, found


def _arm_faults(site: Site) -> None:
    site.sandbox.settings(latency=LATENCY)
    site.sandbox.fault("lost_after", operation="append_items", skip=LOSE_REPLY_OF - 1)
    # The request that the first fault takes is not seen by the second one.
    site.sandbox.fault("lost_before", operation="append_items", skip=KILL_DURING - 2)


def _kill_in_the_middle(site: Site, write: WriteIntent) -> None:
    """SIGKILL the worker while the chosen append is in flight; start another one, as a supervisor would."""

    def is_in_flight() -> bool:
        _show_progress(site, write)
        return [row["operation"] for row in site.sandbox.requests()].count("append_items") >= KILL_DURING

    site.patience.until(is_in_flight, f"Append request {KILL_DURING} reaches the sandbox")
    site.kill_worker()
    site.screen.say(
        f"Killed the worker (SIGKILL to all of its processes) while append request {KILL_DURING} was under way, as a "
        "machine that fails would, and started a new one."
    )
    site.start_worker()
    site.screen.say(
        "The new worker may go on once the dead one's lease has run out. The demo then rings its bell by running the "
        "sweep, which a site has scheduled once a minute."
    )


def _await_saved(site: Site, write: WriteIntent) -> WriteIntent:
    def settled() -> WriteIntent | None:
        operations.sweep()
        return _settled(_show_progress(site, write))

    write = site.patience.until(settled, "The write settles")
    if write.state != WriteState.SAVED:
        raise DemoFailed(f"The write is {write.state}, not saved.")
    return write


def _settled(write: WriteIntent) -> WriteIntent | None:
    return write if write.settled or write.needs_attention else None


def _show_progress(site: Site, write: WriteIntent) -> WriteIntent:
    write = operations.get_write(write.pk)
    site.screen.move_bar(write.items_saved)
    return write


def _tell(screen: Screen, write: WriteIntent) -> None:
    screen.say()
    screen.say("What went wrong, and how it was decided:")
    for title, sentences in story(write):
        screen.say(f"{title}. {' '.join(sentences)}", indent="- ")
    screen.say()


def _conclude(screen: Screen, summary: Summary, found: Comparison) -> None:
    screen.say(
        f"{summary.items} items in {summary.chunks} chunks, {summary.requests} requests in all, {summary.seconds} s. "
        "The remote history, compared with the transcript item by item:"
    )
    order = "in order" if found.in_order else "NOT IN ORDER"
    strangers = f", {found.strangers} that nobody sent" if found.strangers else ""
    screen.say(f"{summary.lost} lost, {summary.duplicates} duplicates, {order}{strangers}.", indent="  ")
