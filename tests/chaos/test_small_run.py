"""A small chaos run on every change; the big one is run by hand (python -m tests.chaos)."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.queue.cluster import site_environment

from .ours import Setup, run
from .plan import Timings, acts, faults

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.skipif(connection.vendor == "sqlite", reason="several clusters want a server"),
]


def test_nothing_is_lost_or_doubled_in_a_small_storm(sandbox, quick, tmp_path):
    timings = Timings(timeout=1.0, grace=0.6, settle=1.0)
    quick.update(
        REQUEST_TIMEOUT=timings.timeout,
        LEASE_GRACE=timings.grace,
        SETTLE_SECONDS=timings.settle,
        RETRY_BACKOFF=(0.1, 1.0),
        DELIVERY_BUDGET=8.0,
        DISPATCHER="convsessions.enqueue.dispatch_with_django_q",  # the doorbells of this process ring too
    )
    setup = Setup(sessions=25, faults=80, kills=8, seed=11, workers=3)
    figures = run(setup, sandbox, site_environment(sandbox.base_url, quick), timings, tmp_path / "workers.log")

    assert figures["reports"] == []
    assert (figures["exact"], figures["ambiguous"], figures["wrong"]) == (25, 0, 0)
    assert figures["kills"] == 8
    assert figures["faults"] >= 40


def test_a_seed_gives_one_plan():
    assert acts(3, 5) == acts(3, 5) != acts(4, 5)
    plans = [list(faults(seed, 50, Timings(), undecidable=True)) for seed in (3, 3, 4)]
    assert plans[0] == plans[1] != plans[2]
