"""What went wrong with a write, and how each case was decided: the journal's rows in plain words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from convsessions.journal.turn import INTERRUPTED
from convsessions.models import Reconciliation, RequestAttempt, WriteChunk, WriteIntent
from convsessions.states import OutcomeKind, Verdict

Event = tuple[dt.datetime, str]

DECIDED = {
    Verdict.SAVED: (
        "The remote history, read from the last item known before, holds its {n} items exactly once: "
        "they are saved, and were not sent again."
    ),
    Verdict.ABSENT: (
        "The remote history, read twice and later than a late request could still land, holds none of its {n} items: "
        "they were not saved, and were sent again."
    ),
    Verdict.DUPLICATED: "The remote history holds its {n} items more than once: a person has to say what is to go.",
    Verdict.PARTIAL: "The remote history holds only a part of its {n} items: a person has to decide.",
    Verdict.CONTESTED: "Another write could explain what the remote history holds: a person has to decide.",
    Verdict.UNDECIDED: "The remote history could not be read: a person has to decide.",
}
NO_LATE_COPY = "Because of that, the history was read once more at the end: no late copy of them had appeared."
LATE_COPY = (
    "When the history was read once more at the end, there was a second copy: a person has to say what is to go."
)


def story(write: WriteIntent) -> Iterator[tuple[str, list[str]]]:
    """Yield (which chunk, its sentences in order) for each chunk of `write` of which a request ended unclear."""
    chunks = list(write.chunks.all())
    for number, chunk in enumerate(chunks, start=1):
        events = sorted([*_mishaps(chunk), *_decisions(chunk)])
        if events:
            last = chunk.first_item + chunk.item_count
            title = f"Chunk {number} of {len(chunks)}, items {chunk.first_item + 1} to {last}"
            closing = _closing(write) if chunk.resent else []
            yield title, [sentence for _, sentence in events] + closing


def decided_by_evidence(write: WriteIntent) -> int:
    """How many requests of unknown outcome were decided from the remote history, without a person."""
    return write.reconciliations.filter(chunk__isnull=False, verdict__in=(Verdict.SAVED, Verdict.ABSENT)).count()


def _mishaps(chunk: WriteChunk) -> Iterator[Event]:
    for attempt in chunk.requests.filter(outcome=OutcomeKind.UNKNOWN):
        yield attempt.finished_at or attempt.sent_at, _mishap(attempt)


def _mishap(attempt: RequestAttempt) -> str:
    if attempt.code == INTERRUPTED:
        return "Its worker was killed while the request was under way, and recorded nothing about how it ended."
    if attempt.status is None:
        return f"The request was sent, and no reply came ({attempt.code})."
    return f"The request was sent, and the reply said nothing usable (HTTP {attempt.status}, {attempt.code})."


def _decisions(chunk: WriteChunk) -> Iterator[Event]:
    for found in Reconciliation.objects.filter(chunk=chunk):
        yield found.created_at, DECIDED[Verdict(found.verdict)].format(n=chunk.item_count)


def _closing(write: WriteIntent) -> list[str]:
    last = write.reconciliations.filter(chunk__isnull=True).order_by("-pk").first()
    if last is None:
        return []
    return [NO_LATE_COPY if last.verdict == Verdict.SAVED else LATE_COPY]
