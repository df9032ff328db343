"""From the commit of a write to the first request that its worker makes, through a real qcluster.

    DATABASE_URL=postgres://… python -m tests.benchmarks.pick_up [--rounds 50] [--poll 5] [--broker orm|postgres|redis]

Prints one JSON object: milliseconds, and the CPU that the whole idle cluster uses, in percent of one core.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from .remote import RemoteProcess
from .site import site

BROKER = "convsessions.brokers.postgres.PostgresBroker"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--poll", type=float, default=5.0)
    parser.add_argument("--idle", type=float, default=10.0, help="seconds that the idle cluster is watched")
    parser.add_argument("--broker", choices=["orm", "postgres", "redis"], default="postgres")
    options = parser.parse_args()
    os.environ["Q_POLL"] = str(options.poll)
    if options.broker == "postgres":
        os.environ["Q_BROKER_CLASS"] = BROKER
    elif options.broker == "redis":
        os.environ.setdefault("REDIS_URL", "redis://127.0.0.1:6379/14")
    with site(DISPATCHER="convsessions.enqueue.dispatch_with_django_q") as remote:
        print(json.dumps({**vars(options), **_measure(remote, options)}))


def _measure(remote: RemoteProcess, options: argparse.Namespace) -> dict[str, Any]:
    from tests.queue.cluster import Cluster, site_environment

    with tempfile.TemporaryDirectory() as folder:
        environment = site_environment(remote.base_url, {})
        with Cluster({**environment, "Q_POLL": str(options.poll)}, Path(folder) / "log") as cluster:
            for _ in range(3):
                _pick_up(remote)  # the workers' first connections
            waits = sorted(_pick_up(remote) * 1000 for _ in range(options.rounds))
            idle = _idle_cpu(cluster.process.pid, options.idle)
    return {
        "median_ms": round(statistics.median(waits), 2),
        "p90_ms": round(waits[int(len(waits) * 0.9)], 2),
        "most_ms": round(waits[-1], 2),
        "idle_cpu_percent": round(idle, 2),
    }


def _pick_up(remote: RemoteProcess) -> float:
    """Seconds from the commit of an append to the first request; returns once the write has settled."""
    from django.db import transaction

    from convsessions import operations

    remote.begin(0.0)
    committed: list[float] = []
    with transaction.atomic():
        transaction.on_commit(lambda: committed.append(time.time()))  # before the doorbell, which is another one
        write = operations.append_items(operations.create_session().pk, [{"role": "user", "content": "Hello"}])
    operations.wait_for_write(write.pk, timeout=30)
    time.sleep(0.2)  # the cluster has to be idle again
    return remote.seen()["arrivals"][0] - committed[0]


def _idle_cpu(group: int, seconds: float) -> float:
    before = _cpu_of_group(group)
    time.sleep(seconds)
    return (_cpu_of_group(group) - before) / seconds * 100


def _cpu_of_group(group: int) -> float:
    used = 0
    for one in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = one.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            used += int(fields[11]) + int(fields[12])
    return used / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
