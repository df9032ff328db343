"""The links above a list to a year, a month, a day: made from the clock, since the database would read every row."""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

YEARS = 10
"""Years that are offered: this one and those before."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """`back`: (title, query string) one level up, None at the top; `choices`: the same for what can be chosen."""

    back: tuple[str, str] | None = None
    choices: list[tuple[str, str]] = field(default_factory=list)


def calendar_of(cl: Any) -> Calendar:
    """What a change list with a `date_hierarchy` offers. `oldest`, if the list has it, bounds the choices: one date."""
    year, month, day = (_chosen(cl, part) for part in ("year", "month", "day"))
    first, last = getattr(cl, "oldest", None), _today()
    if not year:
        years = range(max(first.year if first else last.year, last.year - YEARS + 1), last.year + 1)
        return Calendar(None, [(str(one), _link(cl, year=one)) for one in reversed(years)])
    if not month:
        months = [(date_format(one, "YEAR_MONTH_FORMAT"), one) for one in _months(year, first, last)]
        return Calendar((_("All dates"), _link(cl)), [(t, _link(cl, year=year, month=m.month)) for t, m in months])
    if not day:
        days = [(date_format(one, "MONTH_DAY_FORMAT"), one) for one in _days(year, month, last)]
        chosen = [(title, _link(cl, year=year, month=month, day=one.day)) for title, one in days]
        return Calendar((str(year), _link(cl, year=year)), chosen)
    title = date_format(dt.date(year, month, 1), "YEAR_MONTH_FORMAT")
    return Calendar((title, _link(cl, year=year, month=month)), [])


def _chosen(cl: Any, part: str) -> int:
    """The chosen year, month or day; 0 for none. The change list has refused what is no number."""
    return int(cl.params.get(f"{cl.date_hierarchy}__{part}") or 0)


def _link(cl: Any, **chosen: int) -> str:
    link: str = cl.get_query_string(
        {f"{cl.date_hierarchy}__{part}": number for part, number in chosen.items()}, [f"{cl.date_hierarchy}__"]
    )
    return link


def _months(year: int, first: dt.date | None, last: dt.date) -> Iterator[dt.date]:
    for month in range(1, 13):
        day = dt.date(year, month, 1)
        if day <= last and (first is None or day >= first.replace(day=1)):
            yield day


def _days(year: int, month: int, last: dt.date) -> Iterator[dt.date]:
    for day in range(1, calendar.monthrange(year, month)[1] + 1):
        if dt.date(year, month, day) <= last:
            yield dt.date(year, month, day)


def _today() -> dt.date:
    now = timezone.now()
    return timezone.localdate(now) if timezone.is_aware(now) else now.date()
