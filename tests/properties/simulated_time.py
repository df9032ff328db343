"""One simulated time for the process's clock, the database's clock and Django's.

Leases, deadlines, settle delays and sweeps compare nothing but these three; a test that sets them sees an hour pass
without waiting for it.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.utils import timezone

from convsessions.journal.locking import DatabaseClock
from convsessions.remote import clock

START = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
LITERALS = {
    "as_sqlite": "'{:%Y-%m-%d %H:%M:%S.%f}'",
    "as_postgresql": "'{:%Y-%m-%d %H:%M:%S.%f}+00'::timestamptz",
    "as_mysql": "CAST('{:%Y-%m-%d %H:%M:%S.%f}' AS DATETIME(6))",
}


class SimulatedTime:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> dt.datetime:
        return START + dt.timedelta(seconds=self.seconds)

    def spend(self, seconds: float) -> None:
        self.seconds += seconds

    def install(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(clock, "now", lambda: self.seconds)
        monkeypatch.setattr(timezone, "now", self.now)
        for method, literal in LITERALS.items():
            monkeypatch.setattr(DatabaseClock, method, self._as(literal))

    def _as(self, literal: str) -> Any:
        def as_vendor(function: Any, compiler: Any, connection: Any, **context: Any) -> Any:
            return function.as_sql(compiler, connection, template=literal.format(self.now()), **context)

        return as_vendor
