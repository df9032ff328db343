"""How states, chunks, ids and times look in lists and on pages. Colour only repeats what a text says."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from django.db.models import Count
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from convsessions.models import WriteChunk, WriteIntent
from convsessions.states import HUMAN_HOLDS, CancelCause, HoldCode, RefusalPolicy, Verdict, WriteState

MOST_SQUARES = 20

CONTENT_UNREADABLE = gettext_lazy(
    "The content in the journal cannot be decrypted with this site's keys. Put the right one back into CIPHER_KEYS."
)
WHAT_TO_DO = {
    HoldCode.BAD_KEY: gettext_lazy("Give the workers a key that is valid, then Retry now."),
    HoldCode.FORBIDDEN: gettext_lazy("Give the key the permission, or use another, then Retry now."),
    HoldCode.QUOTA: gettext_lazy("Raise the quota or pay the bill, then Retry now."),
    HoldCode.MISSING: gettext_lazy(
        "See that the key is of the right project, then Retry now. Clear the session if the conversation was deleted."
    ),
    HoldCode.CONTENT: gettext_lazy(
        "Put the key back into CIPHER_KEYS, where the workers run, then Retry now. Nothing is lost meanwhile."
    ),
}
"""What ends the holds that need a person."""

CHUNK_ORDER = (
    WriteState.SAVED,
    WriteState.REFUSED,
    WriteState.AMBIGUOUS,
    WriteState.SENDING,
    WriteState.PENDING,
    WriteState.CANCELLED,
)
"""Chunks settle in order: so they stand in a write that does not go on behind what was refused."""
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


def what_to_do(write: WriteIntent) -> Any:
    """How a person ends the hold of a write; "" where none is needed."""
    return advice(write.hold_code) if write.needs_attention else ""


def advice(hold_code: str) -> Any:
    """How a person ends a hold with this code; "" where none is needed."""
    return WHAT_TO_DO.get(HoldCode(hold_code), "")


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


def chunk_states(writes: Iterable[WriteIntent]) -> dict[Any, list[str]]:
    """The states of the chunks of each of `writes`, in their order: one query or two, without the payloads."""
    found = list(writes)
    counts: dict[Any, dict[str, int]] = {}
    chunks = WriteChunk.objects.filter(write__in=[write.pk for write in found]).order_by()
    for write_id, state, number in chunks.values_list("write_id", "state").annotate(Count("pk")):
        counts.setdefault(write_id, {})[state] = number
    states: dict[Any, list[str]] = {
        pk: [state for state in CHUNK_ORDER for _number in range(of.get(state, 0))] for pk, of in counts.items()
    }
    mixed = [
        write.pk
        for write in found
        if write.on_refusal == RefusalPolicy.SKIP and WriteState.REFUSED in counts.get(write.pk, {})
    ]
    if mixed:
        states |= {pk: [] for pk in mixed}
        in_order = WriteChunk.objects.filter(write__in=mixed).order_by("write_id", "first_item")
        for write_id, state in in_order.values_list("write_id", "state"):
            states[write_id].append(state)
    return states


def strip(states: Sequence[str]) -> SafeString | str:
    """One square per chunk, or per some chunks where there are many, with the counts as its text."""
    if not states:
        return ""
    squares = format_html_join("", '<i class="cs-{}"></i>', ((state,) for state in squares_of(states)))
    return format_html(
        '<span class="cs-strip" role="img" aria-label="{0}" title="{0}">{1}</span>', spoken(states), squares
    )


def squares_of(states: Sequence[str]) -> list[str]:
    """The states that the squares of a strip show; of several chunks the most urgent one."""
    size = min(len(states), MOST_SQUARES)
    edges = [index * len(states) // size for index in range(size + 1)]
    return [max(states[start:end], key=URGENCY.index) for start, end in pairwise(edges)]


def spoken(states: Sequence[str]) -> str:
    """As in "5 chunks: 1 saved, 1 ambiguous, 3 pending"."""
    counts = Counter(states)
    each = ", ".join(f"{counts[state]} {state.label}" for state in CHUNK_ORDER if counts[state])
    chunks = ngettext("%(number)d chunk", "%(number)d chunks", len(states)) % {"number": len(states)}
    return f"{chunks}: {each}"


def span(first: int, count: int) -> str:
    """As in "items 20 to 39": positions in the write, from 0."""
    if count == 1:
        return _("item %(first)d") % {"first": first}
    return _("items %(first)d to %(last)d") % {"first": first, "last": first + count - 1}
