"""The admin's lists and overview over a journal of a million writes: what each page costs, and how.

    DATABASE_URL=postgres://… python -m tests.benchmarks.admin_changelist [--writes 1000000] [--rounds 7] [--keep]

PostgreSQL only. Makes a test database beside the one that DATABASE_URL names, fills it with SQL and drops it (not with
`--keep`, which also takes up what is there). Prints, for each page, the median of the rounds in milliseconds of the
whole request within this process, the number of queries, and the plan of the slowest query of each page.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from typing import Any

import django


def main() -> None:
    options = _options()
    os.environ.update(DJANGO_SETTINGS_MODULE="project.settings", OPENAI_API_KEY="sk-test", DJANGO_DEBUG="0")
    os.environ["CONVSESSIONS_DISPATCHER"] = "convsessions.enqueue.dispatch_nowhere"
    django.setup()
    from django.test.utils import setup_databases, setup_test_environment, teardown_databases

    from convsessions.models import WriteIntent
    from tests.benchmarks.big_journal import fill

    setup_test_environment(debug=False)
    databases = setup_databases(verbosity=0, interactive=False, keepdb=options.keep, serialized_aliases=[])
    try:
        began = time.perf_counter()
        if WriteIntent.objects.count() != options.writes:
            fill(options.writes)
        print(json.dumps({"writes": options.writes, "filled_in_s": round(time.perf_counter() - began)}), flush=True)
        for name, address in _pages().items():
            print(json.dumps(_measure(name, address, options)), flush=True)
    finally:
        teardown_databases(databases, verbosity=0, keepdb=options.keep)


def _pages() -> dict[str, str]:
    """The pages by name, each with what an operator would look for."""
    from django.urls import reverse

    from convsessions.models import RequestAttempt, WriteChunk, WriteIntent

    writes, sessions = (
        reverse(f"admin:convsessions_{one}_changelist") for one in ("writeintent", "conversationsession")
    )
    write = WriteIntent.objects.order_by("created_at").select_related("session")[1000]
    item = WriteChunk.objects.get(write=write).remote_ids[1]
    request = RequestAttempt.objects.get(write=write).request_id
    day = f"created_at__year={write.created_at.year}&created_at__month={write.created_at.month}"
    queries = {
        "": "",
        " needing attention": "attention=yes",
        " ambiguous": "state=ambiguous",
        " sending": "state=sending",
        " refused": "state=refused",
        " saved": "state=saved",
        " pops": "kind__exact=pop",
        " held": "held=bad_key",
        " partial": "verdict=partial",
        " older than a day, open": "age=open_day",
        " of the last hour": "age=hour",
        " of a month": day,
        " of a day": f"{day}&created_at__day={write.created_at.day}",
        " last page": "p=200",
        " by key": f"q={write.session.key}",
        " by conversation": f"q={write.session.conversation_id}",
        " by request": f"q={request}",
        " by item": f"q={item}",
        " by write": f"q={write.pk}",
        " by nothing": "q=nothing",
    }
    return {
        **{f"writes{name}": f"{writes}?{query}" for name, query in queries.items()},
        "sessions": sessions,
        "sessions needing attention": f"{sessions}?attention=yes",
        "sessions by key": f"{sessions}?q={write.session.key}",
        "sessions by a part of the key": f"{sessions}?q=ey-99999",
        "one write": reverse("admin:convsessions_writeintent_change", args=[write.pk]),
        "one session": reverse("admin:convsessions_conversationsession_change", args=[write.session_id]),
        "overview": reverse("admin:convsessions_writeintent_overview"),
    }


def _measure(name: str, address: str, options: argparse.Namespace) -> dict[str, Any]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    client = _superuser()
    times = []
    for _round in range(options.rounds):
        began = time.perf_counter()
        answer = client.get(address)
        times.append(1000 * (time.perf_counter() - began))
        assert answer.status_code == 200, (address, answer.status_code)
    with CaptureQueriesContext(connection) as captured:
        client.get(address)
    slowest = max(captured.captured_queries, key=lambda query: float(query["time"]))
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {slowest['sql']}")
        plan = [row[0] for row in cursor.fetchall()]
    figures = {"page": name, "median_ms": round(statistics.median(times), 1), "most_ms": round(max(times), 1)}
    return {**figures, "queries": len(captured), "plan": plan if options.plans else plan[:4]}


def _superuser() -> Any:
    from django.contrib.auth import get_user_model
    from django.test import Client

    user, _new = get_user_model().objects.get_or_create(username="bench", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user)
    return client


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writes", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--keep", action="store_true", help="leave the database there, and take up one that is")
    parser.add_argument("--plans", action="store_true", help="print whole plans")
    return parser.parse_args()


if __name__ == "__main__":
    main()
