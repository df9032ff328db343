"""Many sessions in one event loop: ours against the SDK's own, in the same run, on the same server.

    python -m tests.benchmarks.agents_concurrent [--sessions 200] [--items 40] [--remote agentic|sandbox] [--rounds 3]

Takes the database from DATABASE_URL (a test database beside it is made and dropped) and prints one JSON object:
medians of the rounds, seconds of wall time, seconds of CPU of this process, and the most sockets and threads with a
database connection that were open at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import django

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    options = _options()
    os.environ.update(DJANGO_SETTINGS_MODULE="project.settings", OPENAI_API_KEY="sk-test")
    os.environ["CONVSESSIONS_DISPATCHER"] = "convsessions.enqueue.dispatch_nowhere"
    if options.threads:
        os.environ["CONVSESSIONS_ASYNC_THREADS"] = str(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{folder}/bench.sqlite3")
        django.setup()
        with _remote(options, Path(folder)) as base_url, _database(Path(folder)):
            os.environ["OPENAI_BASE_URL"] = base_url
            print(json.dumps(_compare(options), indent=1))


def _compare(options: argparse.Namespace) -> dict[str, Any]:
    rounds = {"sdk": [], "ours": []}
    for number in range(options.rounds):
        for name in ("sdk", "ours") if number % 2 == 0 else ("ours", "sdk"):
            rounds[name].append(asyncio.run(_round(_SIDES[name], options, number)))
    median = {
        side: {figure: round(statistics.median(one[figure] for one in got), 3) for figure in got[0]}
        for side, got in rounds.items()
    }
    ratio = {figure: round(median["ours"][figure] / median["sdk"][figure], 2) for figure in ("wall", "cpu")}
    return {**vars(options), **median, "ratio": ratio}


async def _round(side: Callable[..., Awaitable[int]], options: argparse.Namespace, number: int) -> dict[str, float]:
    most, stop = {"http": 0, "database": 0}, asyncio.Event()
    watching = asyncio.create_task(_watch(most, stop))
    wall, cpu = time.perf_counter(), time.process_time()
    await side(options, number)
    figures = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    stop.set()
    await watching
    return {**figures, **most}


async def _sdk(options: argparse.Namespace, number: int) -> None:
    from agents import OpenAIConversationsSession
    from openai import AsyncOpenAI

    async with AsyncOpenAI() as client:
        await _add_and_check(
            [OpenAIConversationsSession(openai_client=client) for _ in range(options.sessions)], options
        )


async def _ours(options: argparse.Namespace, number: int) -> None:
    from convsessions.agents import DjangoConversationsSession

    sessions = [DjangoConversationsSession(key=f"{number}/{index}", patience=120) for index in range(options.sessions)]
    await _add_and_check(sessions, options)


_SIDES = {"sdk": _sdk, "ours": _ours}


async def _add_and_check(sessions: list[Any], options: argparse.Namespace) -> None:
    """All sessions at once, each with one append and one read of what it appended."""
    items = [{"type": "message", "role": "user", "content": f"item {index}"} for index in range(options.items)]

    async def one(session: Any) -> None:
        await session.add_items(items)
        if options.read:
            stored = await session.get_items()
            assert [item["content"][0]["text"] for item in stored] == [item["content"] for item in items]

    await asyncio.gather(*(one(session) for session in sessions))


async def _watch(most: dict[str, int], stop: asyncio.Event) -> None:
    """The most open sockets to the API and threads with a database connection, looked at now and then."""
    import threading

    before = _sockets()
    while not stop.is_set():
        database = sum(thread.name == "convsessions" for thread in threading.enumerate())
        most["database"] = max(most["database"], database)
        most["http"] = max(most["http"], _sockets() - before)  # on a database server: and those to the database
        await asyncio.sleep(0.2)


def _sockets() -> int:
    found = 0
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found += str(one.readlink()).startswith("socket:")
    return found


@contextmanager
def _remote(options: argparse.Namespace, folder: Path) -> Any:
    from convsessions.sandbox.testing import SandboxProcess
    from tests.agentic import agentic_api

    if options.remote == "agentic":
        with agentic_api(folder) as url:
            yield url
    else:
        with SandboxProcess(folder, python=sys.executable, manage=ROOT / "manage.py") as sandbox:
            yield sandbox.base_url


@contextmanager
def _database(folder: Path) -> Any:
    from django.db import connection
    from django.test.utils import setup_databases, teardown_databases

    from convsessions.delivery import threads

    if connection.vendor == "sqlite":
        connection.settings_dict["TEST"]["NAME"] = str(folder / "test.sqlite3")
    old = setup_databases(verbosity=0, interactive=False)
    try:
        yield
    finally:
        threads.close()
        teardown_databases(old, verbosity=0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0, help="ASYNC_THREADS; 0: its default")
    parser.add_argument("--read", action="store_true", help="read each history back, too")
    parser.add_argument("--remote", choices=["agentic", "sandbox"], default="agentic")
    return parser.parse_args()


if __name__ == "__main__":
    main()
