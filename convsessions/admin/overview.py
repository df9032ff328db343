"""The page that says how delivery is doing. It reads the journal only, and changes nothing."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from convsessions.enqueue import reported_workers
from convsessions.states import HoldCode, Resolution, Verdict, WriteState

from . import display, figures
from .chart import stacked
from .timeline import VERDICTS

if TYPE_CHECKING:
    from .writes import WriteAdmin

OUTCOMES = {
    "saved": _("saved"),
    "open": _("open"),
    "ambiguous": _("ambiguous"),
    "refused": _("refused"),
    "cancelled": _("cancelled"),
}
"""What became of writes, from the bottom of a bar up."""
COLOURS = {"open": "sending"}


def show(model_admin: WriteAdmin, request: HttpRequest) -> HttpResponse:
    now = figures.present()
    hours, unknown = figures.hours(now), figures.unknown(now)
    times = figures.saving_times(now)
    return model_admin.page(
        request,
        "writeintent/overview.html",
        title=gettext("Overview"),
        original=None,
        now=now,
        attention=_attention(figures.attention()),
        oldest=_oldest(model_admin, figures.oldest_waiting()),
        workers=figures.workers(now, reported=reported_workers()),
        p50=_seconds(figures.percentile(times, 0.5)),
        p95=_seconds(figures.percentile(times, 0.95)),
        timed=len(times),
        hours=hours,
        **_hours(hours),
        unknown=unknown.requests,
        decided=_decided(unknown),
    )


def _attention(counts: dict[tuple[str, str, str], int]) -> dict[str, Any]:
    """Totals, and each cause with its number and the filter that lists it, the most frequent first."""
    causes: dict[tuple[str, str], int] = {}
    for (state, hold, verdict), number in counts.items():
        key = ("verdict", verdict) if state == WriteState.AMBIGUOUS else ("held", hold)
        causes[key] = causes.get(key, 0) + number
    ambiguous = sum(number for (name, _value), number in causes.items() if name == "verdict")
    rows = [
        (badge_of(name, value), number, f"{name}={value}", display.advice(value) if name == "held" else "")
        for (name, value), number in sorted(causes.items(), key=lambda cause: -cause[1])
    ]
    return {"ambiguous": ambiguous, "held": sum(causes.values()) - ambiguous, "causes": rows}


def badge_of(name: str, value: str) -> Any:
    """A verdict or a hold on its colour."""
    if name == "held":
        return display.badge("held", HoldCode(value).label)
    label = (
        str(Verdict(value).label).partition(":")[0] if value in Verdict.values else value or gettext("unknown cause")
    )
    return display.badge(VERDICTS.get(value, "ambiguous"), label)


def _oldest(model_admin: WriteAdmin, write: Any) -> dict[str, Any] | None:
    if write is None:
        return None
    return {
        "age": display.age(write.created_at),
        "address": model_admin.address("change", write.pk),
        "badge": display.state_badge(write),
        "why": display.why(write),
    }


def _hours(hours: figures.Hours) -> dict[str, Any]:
    """The chart, the same as a table, and the totals."""
    columns = [(_clock(hour), _outcomes(states)) for hour, states in sorted(hours.counts.items())]
    total = {name: sum(counts.get(name, 0) for _label, counts in columns) for name in OUTCOMES}
    return {
        "chart": stacked(columns, list(OUTCOMES)),
        "legend": [(COLOURS.get(name, name), label, total[name]) for name, label in OUTCOMES.items()],
        "table": [(label, [counts.get(name, 0) for name in OUTCOMES]) for label, counts in columns],
        "outcomes": list(OUTCOMES.values()),
        "total": sum(total.values()),
    }


def _outcomes(states: dict[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for state, number in states.items():
        name = "open" if state in {WriteState.PENDING, WriteState.SENDING} else state
        found[name] = found.get(name, 0) + number
    return found


def _clock(hour: dt.datetime) -> str:
    return f"{timezone.localtime(hour) if timezone.is_aware(hour) else hour:%H:%M}"


def _decided(unknown: figures.Unknown) -> dict[str, Any]:
    """By evidence alone, and by operators: (badge or label, number), in the order of the vocabularies."""
    return {
        "evidence": [(badge_of("verdict", one), unknown.verdicts[one]) for one in Verdict if one in unknown.verdicts],
        "operators": [(one.label, unknown.resolutions[one]) for one in Resolution if one in unknown.resolutions],
    }


def _seconds(seconds: float | None) -> str:
    """As in "0.42 s", "12 s", "3 min"."""
    if seconds is None:
        return ""
    if seconds < 10:
        return gettext("%(number)s s") % {"number": f"{seconds:.2f}"}
    if seconds < 600:
        return gettext("%(number)s s") % {"number": f"{seconds:.0f}"}
    return gettext("%(number)s min") % {"number": f"{seconds / 60:.0f}"}
