"""The same plan with the Agents SDK's own session: without retries, or with the retry that comes to mind first.

No process is killed here, and no reply comes a byte now and then, for which it waits even when it is cancelled; both
are in its favour.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import openai
from agents.memory import OpenAIConversationsSession

from convsessions.sandbox.testing import SandboxProcess

from .history import Tally
from .ours import FOREIGN, Setup, Storm
from .plan import Timings, acts

NAIVE_TRIES = 4
PATIENCE = 4.0
"""Seconds that an application waits for one call."""


def run(setup: Setup, sandbox: SandboxProcess, timings: Timings, *, retry: bool) -> dict[str, Any]:
    """Appends only: the plan without its pops and clears. Returns the figures."""
    began = time.monotonic()
    storm = Storm(sandbox, setup, timings)
    for operation, planned in storm.planned.items():
        storm.planned[operation] = [fault for fault in planned if fault["kind"] != "trickle"]
    storm.start()
    tally = asyncio.run(_run(setup, sandbox, timings, tries=NAIVE_TRIES if retry else 1))
    storm.stop()
    figures = {name: getattr(tally, name) for name in ("exact", "ambiguous", "wrong", "doubled", "lost")}
    struck = sum(1 for row in sandbox.requests() if row["fault"])
    return {**figures, "sessions": setup.sessions, "faults": struck, "seconds": round(time.monotonic() - began, 1)}


async def _run(setup: Setup, sandbox: SandboxProcess, timings: Timings, *, tries: int) -> Tally:
    plan = acts(setup.seed, setup.sessions, writes=setup.writes, removals=False, refusals=False)
    at_once = asyncio.Semaphore(16)
    tally = Tally()
    async with openai.AsyncOpenAI(
        base_url=sandbox.base_url, api_key="sk-test", timeout=timings.timeout, max_retries=0
    ) as client:

        async def one(number: int) -> None:
            async with at_once:
                session = OpenAIConversationsSession(openai_client=client)
                expected: list[str] = []
                for act in [act for act in plan if act.session == number]:
                    expected += act.texts
                    await _append(session, act.items, tries)
                stored = sandbox.items(session.session_id) if session._session_id else []
                texts = [item["content"][0]["text"] for item in stored]
                tally.add(f"session {number}", expected, [text for text in texts if text != FOREIGN], asked=False)

        await asyncio.gather(*(one(number) for number in range(setup.sessions)))
    return tally


async def _append(session: OpenAIConversationsSession, items: list[dict[str, Any]], tries: int) -> None:
    for _ in range(tries):
        try:
            async with asyncio.timeout(PATIENCE):
                await session.add_items(items)
        except Exception:  # noqa: BLE001 - whatever an application would catch
            continue
        return
