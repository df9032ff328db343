"""Many sessions at once: in one event loop, ours and the SDK's; and through workers that serve many at a time.

Each session gets ITEMS items in one append: a request that creates its conversation, and CHUNKS requests.
"""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from .remote import RemoteProcess
from .single import messages

CHUNKS = 5
WORKERS, EACH = 2, 100
"""Worker processes, and the sessions that each serves at a time."""

WORKER = """
import sys, django; django.setup()
from convsessions import operations
session = operations.create_session()
operations.append_items(session.pk, [{{"role": "user", "content": "warm"}}])
operations.deliver_ready(1, first=[session.pk])
print("ready", flush=True)
sys.stdin.readline()
operations.deliver_ready({each}, budget=600)
"""


def run(remote: RemoteProcess, numbers: list[int], latencies: list[float], rounds: int) -> list[dict[str, Any]]:
    """Medians of `rounds` for each number of sessions and each latency."""
    found = []
    for latency in latencies:
        for number in numbers:
            sides: dict[str, list[dict[str, float]]] = {"sdk": [], "ours": [], "workers": []}
            for _ in range(rounds):
                for name, side in (("sdk", _sdk), ("ours", _ours), ("workers", _workers)):
                    remote.begin(latency)
                    before = remote.cpu_seconds()
                    figures = side(number)
                    figures["remote_cpu"] = remote.cpu_seconds() - before
                    figures["cores"] = _of_all(figures)
                    sides[name].append({**figures, "most_at_work": remote.seen()["most_at_work"]})
            medians = {
                name: {figure: round(statistics.median(one[figure] for one in got), 2) for figure in got[0]}
                for name, got in sides.items()
            }
            found.append(
                {"sessions": number, "latency_ms": latency * 1000, "requests": number * (CHUNKS + 1), **medians}
            )
            print(".", end="", flush=True)
    print()
    return found


def _of_all(figures: dict[str, float]) -> float:
    """The cores that clients, database and server had in the mean: with all there are, none could be quicker."""
    return (figures["cpu"] + figures["database_cpu"] + figures["remote_cpu"]) / figures["wall"]


def _sdk(number: int) -> dict[str, float]:
    from agents import OpenAIConversationsSession
    from openai import AsyncOpenAI

    async def work() -> None:
        async with AsyncOpenAI() as client:
            await asyncio.gather(
                *(
                    OpenAIConversationsSession(openai_client=client).add_items(messages(20 * CHUNKS))
                    for _ in range(number)
                )
            )

    return _timed(lambda: asyncio.run(work()))


def _ours(number: int) -> dict[str, float]:
    from convsessions.agents import DjangoConversationsSession

    async def work() -> None:
        sessions = [DjangoConversationsSession(key=str(uuid.uuid4()), patience=600) for _ in range(number)]
        await asyncio.gather(*(session.add_items(messages(20 * CHUNKS)) for session in sessions))

    return _timed(lambda: asyncio.run(work()))


def _workers(number: int) -> dict[str, float]:
    """From the word to begin until all is saved. Recording, and the start and first delivery of each, do not count."""
    from convsessions import operations
    from tests.queue.cluster import database_url

    environment = {**os.environ, "DATABASE_URL": database_url()}
    command = [sys.executable, "-c", WORKER.format(each=EACH)]
    workers = [
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(WORKERS)
    ]
    for worker in workers:
        worker.stdout.readline()
    for _ in range(number):
        operations.append_items(operations.create_session().pk, messages(20 * CHUNKS))
    before, began = sum(_cpu(worker.pid) for worker in workers), time.perf_counter()
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    database = _database_cpu()
    for worker in workers:
        worker.wait()
        worker.stdin.close()
        worker.stdout.close()
    wall = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = used.ru_utime + used.ru_stime - _workers.before - before
    _workers.before += spent + before
    return {"wall": wall, "cpu": spent, "database_cpu": max(_database_cpu() - database, 0.0)}


_workers.before = 0.0


def _timed(work: Any) -> dict[str, float]:
    database, cpu, wall = _database_cpu(), time.process_time(), time.perf_counter()
    work()
    return {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "database_cpu": max(_database_cpu() - database, 0.0),
    }


def _database_cpu() -> float:
    """Seconds that PostgreSQL's processes on this machine have used so far; ended ones count for their parent."""
    used = 0.0
    for one in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = one.read_text().rsplit(")", 1)
        except OSError:
            continue
        if name.endswith("(postgres"):
            used += sum(map(int, fields.split()[11:15])) / os.sysconf("SC_CLK_TCK")
    return used


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
