"""The journal's hot queries over 10,000 to 1,000,000 writes: their times and the indexes that they use.

    DATABASE_URL=postgres://… python -m tests.benchmarks.hot_queries [--writes 10000 100000 1000000] [--rounds 9]

PostgreSQL only; a test database beside that of DATABASE_URL is made, filled with SQL, and dropped. Prints, for each
step of the journal, the median of the time that its statements take together, in milliseconds.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import re
import statistics
import time
from collections.abc import Callable
from typing import Any

from .site import site


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with site():
        from django.core.management import call_command

        for writes in options.writes:
            call_command("flush", interactive=False, verbosity=0)
            _fill(writes)
            for name, step in _steps().items():
                _print(writes, name, step, options.rounds)
            _make_all_due()
            _print(writes, "choose 16, every session due", _choose, options.rounds)


def _print(writes: int, name: str, step: Callable[[], Any], rounds: int) -> None:
    print(json.dumps({"writes": writes, "step": name, **_measure(step, rounds)}), flush=True)


def _make_all_due() -> None:
    """As after an outage of the API."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE convsessions_conversationsession SET wake_at = now() - random() * interval '1 hour', "
            "lease_token = NULL, lease_expires_at = NULL"
        )
        cursor.execute("VACUUM ANALYZE convsessions_conversationsession")


def _choose() -> Any:
    from django.utils import timezone

    from convsessions.journal import choosing, locking

    return choosing._candidates(16 * choosing.CANDIDATES, timezone.now(), set(), locking.alias())


def _fill(writes: int) -> None:
    """Beside what `fill` makes: a tenth of the sessions deleted, and one in a thousand due."""
    from django.db import connection

    from .big_journal import fill

    fill(writes)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE convsessions_conversationsession SET deleted_at = now() WHERE random() < 0.1")
        cursor.execute(
            "UPDATE convsessions_conversationsession SET wake_at = now() - interval '1 minute' WHERE id IN "
            "(SELECT session_id FROM convsessions_writeintent WHERE is_open)"
        )
        cursor.execute("VACUUM ANALYZE")


def _steps() -> dict[str, Callable[[], Any]]:
    from django.db import transaction
    from django.utils import timezone

    from convsessions.journal import locking, purging
    from convsessions.journal.chunks import in_hand, unsettled
    from convsessions.journal.recording import _replayed
    from convsessions.journal.turn import Turn
    from convsessions.models import ConversationSession, WriteIntent

    write = WriteIntent.objects.filter(is_open=True).first() or WriteIntent.objects.first()
    now, using = timezone.now(), locking.alias()
    due, of_session = ConversationSession.objects.due(now), WriteIntent.objects.filter(session=write.session_id)
    new = WriteIntent(session_id=write.session_id, idempotency_digest="0" * 64, kind="append")

    def locked(step: Callable[[], Any]) -> Callable[[], Any]:
        def inside() -> Any:
            with transaction.atomic():
                return step()

        return inside

    return {
        "lock a session": locked(lambda: locking.lock_session(write.session_id, using=using)),
        "head of its queue": lambda: Turn(write.session, now, 0.0, using).head(),
        "next chunk": lambda: unsettled(write, using).first(),
        "chunk in hand": lambda: in_hand(write, using),
        "idempotency key": locked(lambda: _replayed(new, using=using)),
        "sweep: 1000 due sessions": lambda: list(due.values_list("pk", "wake_at")[:1000]),
        "choose 16 ready sessions": _choose,
        "needing attention": lambda: list(WriteIntent.objects.needing_attention().order_by("created_at")[:20]),
        "oldest open write": lambda: WriteIntent.objects.open().order_by("created_at").first(),
        "writes of a session": lambda: list(of_session.order_by("-sequence")[:20]),
        "purge: 1000 writes": lambda: list(
            purging.purgeable(now - dt.timedelta(days=15), refused=False, using=using)
            .order_by("settled_at")
            .values_list("pk", "session_id", "items_total")[:1000]
        ),
    }  # fmt: skip


def _measure(step: Callable[[], Any], rounds: int) -> dict[str, Any]:
    from django.db import connection

    spent: list[float] = []
    statements: list[tuple[str, Any]] = []

    def timed(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            spent[-1] += (time.perf_counter() - began) * 1000
            statements.append((sql, params))

    with connection.execute_wrapper(timed):
        for _ in range(rounds):
            spent.append(0.0)
            statements.clear()
            step()
    plans: set[str] = set()
    for sql, params in statements:
        if sql.startswith("SELECT"):
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN {sql}", params)
                plans |= set(
                    re.findall(r"(?:Index (?:Only )?Scan.* using|Seq Scan on) \S+", "\n".join(row[0] for row in cursor))
                )
    return {"median_ms": round(statistics.median(spent), 2), "most_ms": round(max(spent), 2), "plan": sorted(plans)}


if __name__ == "__main__":
    main()
