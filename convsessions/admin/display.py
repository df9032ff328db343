"""How states, chunks, ids and times look in lists and on pages. Colour only repeats what a text says."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from django.db.models import Count, Model
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from convsessions.models import WriteChunk, WriteIntent
from convsessions.states import HUMAN_HOLDS, CancelCause, HoldCode, Verdict, WriteState

MOST_SQUARES = 20

CHUNK_ORDER = (
    WriteState.SAVED,
    WriteState.REFUSED,
    WriteState.AMBIGUOUS,
    WriteState.SENDING,
    WriteState.PENDING,
    WriteState.CANCELLED,
)
"""Chunks settle in order: so they stand in a write, and counts alone tell the state of each."""
URGENCY = (
    WriteState.SAVED,
    WriteState.PENDING,
    WriteState.CANCELLED,
    WriteState.SENDING,
    WriteState.REFUSED,
    WriteState.AMBIGUOUS,
)


def badge(state: str, label: Any) -> SafeString:
    """`label` on the colour of `state`."""
    return format_html('<span class="cs-badge cs-{}">{}</span>', state or "none", label)


def state_badge(write: WriteIntent) -> SafeString:
    held = write.hold_code in HUMAN_HOLDS and not write.settled
    return badge("held", _("held")) if held else badge(write.state, write.get_state_display())


def why(write: WriteIntent) -> str:
    """Why a write is where it is, in a few words."""
    if write.state == WriteState.AMBIGUOUS:
        return str(Verdict(write.error_code).label) if write.error_code in Verdict.values else write.error_code
    if write.hold_code:
        return str(HoldCode(write.hold_code).label)
    if write.state == WriteState.REFUSED:
        return " · ".join(filter(None, (write.error_code, write.error_param)))
    if write.state == WriteState.CANCELLED and write.cancel_cause:
        return _("by %(cause)s") % {"cause": CancelCause(write.cancel_cause).label}
    return ""


def progress(write: WriteIntent) -> str:
    if not write.items_total:
        return ""
    return _("%(saved)d of %(total)d items") % {"saved": write.items_saved, "total": write.items_total}


def age(moment: dt.datetime | None) -> SafeString | str:
    """How long ago, in one unit; the exact time as the title."""
    if moment is None:
        return ""
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact(moment), timesince(moment, depth=1)
    )


def exact(moment: dt.datetime) -> str:
    local = timezone.localtime(moment) if timezone.is_aware(moment) else moment
    return f"{date_format(local, 'SHORT_DATE_FORMAT')} {local:%H:%M:%S %Z}".strip()


def short(pk: Any) -> str:
    """The start of a UUID: enough to tell rows apart in a list."""
    return str(pk)[:8]


def short_id(remote_id: str) -> SafeString:
    """The start and the end of a remote id; the whole one as the title."""
    return format_html('<code title="{}">{}…{}</code>', remote_id, remote_id[:8], remote_id[-6:])


def count_chunks(writes: Iterable[Model]) -> dict[Any, dict[str, int]]:
    """How many chunks each of `writes` has in each state: one query, without the payloads."""
    counts: dict[Any, dict[str, int]] = {}
    rows = WriteChunk.objects.filter(write__in=[write.pk for write in writes]).order_by()
    for write_id, state, number in rows.values_list("write_id", "state").annotate(Count("pk")):
        counts.setdefault(write_id, {})[state] = number
    return counts


def strip(counts: Mapping[str, int]) -> SafeString | str:
    """One square per chunk, or per some chunks where there are many, with the counts as its text."""
    if not counts:
        return ""
    squares = format_html_join("", '<i class="cs-{}"></i>', ((state,) for state in squares_of(counts)))
    return format_html(
        '<span class="cs-strip" role="img" aria-label="{0}" title="{0}">{1}</span>', spoken(counts), squares
    )


def squares_of(counts: Mapping[str, int]) -> list[str]:
    """The states that the squares of a strip show; of several chunks the most urgent one."""
    states = [state for state in CHUNK_ORDER for _number in range(counts.get(state, 0))]
    size = min(len(states), MOST_SQUARES)
    edges = [index * len(states) // size for index in range(size + 1)]
    return [max(states[start:end], key=URGENCY.index) for start, end in pairwise(edges)]


def spoken(counts: Mapping[str, int]) -> str:
    """As in "5 chunks: 1 saved, 1 ambiguous, 3 pending"."""
    total = sum(counts.values())
    each = ", ".join(f"{counts[state]} {state.label}" for state in CHUNK_ORDER if counts.get(state))
    chunks = ngettext("%(number)d chunk", "%(number)d chunks", total) % {"number": total}
    return f"{chunks}: {each}"


def span(first: int, count: int) -> str:
    """As in "items 20 to 39": positions in the write, from 0."""
    if count == 1:
        return _("item %(first)d") % {"first": first}
    return _("items %(first)d to %(last)d") % {"first": first, "last": first + count - 1}
