"""One session: the same operation by the SDK's session and by ours, in turns, each as the other left off."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .counting import Counts
from .remote import RemoteProcess

Operation = Callable[[], Awaitable[Any]]


@dataclass(slots=True)
class Side:
    """Seconds of each round; requests, statements and commits of the last one."""

    seconds: list[float] = field(default_factory=list)
    requests: int = 0
    queries: int = 0
    commits: int = 0

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass(slots=True)
class Result:
    """`sdk`: None where the SDK has nothing of the kind."""

    name: str
    latency: float
    ours: Side
    sdk: Side | None

    def as_dict(self) -> dict[str, Any]:
        sides = {"ours": self.ours} if self.sdk is None else {"sdk": self.sdk, "ours": self.ours}
        figures = {
            name: {
                "median_ms": round(side.median * 1000, 2), "requests": side.requests, "queries": side.queries,
                "commits": side.commits,
            }
            for name, side in sides.items()
        }  # fmt: skip
        ratio = {} if self.sdk is None else {"ratio": round(self.ours.median / self.sdk.median, 3)}
        return {"operation": self.name, "latency_ms": self.latency * 1000, **figures, **ratio}


def messages(count: int) -> list[dict[str, Any]]:
    text = "Where is my order? It was to arrive on Friday, and nobody knows where it is. " * 3
    return [{"type": "message", "role": "user", "content": f"{index}: {text}"} for index in range(count)]


async def run(remote: RemoteProcess, counts: Counts, latencies: list[float], rounds: int) -> list[Result]:
    """All operations at each latency, `rounds` times each."""
    from openai import AsyncOpenAI

    results: list[Result] = []
    async with AsyncOpenAI() as client:
        for latency in latencies:
            remote.begin(latency)
            for name, pair in (await _operations(client)).items():
                results.append(await _compare(name, pair, latency, remote, counts, rounds))
                print(".", end="", flush=True)
    print()
    return results


async def _operations(client: Any) -> dict[str, tuple[Operation | None, Operation]]:
    from agents import OpenAIConversationsSession

    from convsessions.agents import DjangoConversationsSession

    sdk, ours = OpenAIConversationsSession(openai_client=client), DjangoConversationsSession(key=f"k{time.time()}")
    full = OpenAIConversationsSession(openai_client=client), DjangoConversationsSession(key=f"f{time.time()}")
    for session in (sdk, ours, *full):
        await session.add_items(messages(40))
    for session in full:
        await session.add_items(messages(1960))
    found: dict[str, tuple[Operation | None, Operation]] = {}
    for count in (20, 200, 2000):
        found[f"append {count} inline"] = (
            partial(sdk.add_items, messages(count)),
            partial(ours.add_items, messages(count)),
        )
        found[f"append {count} by a worker"] = partial(sdk.add_items, messages(count)), await _by_a_worker(count)
    found["read all of 2000"] = full[0].get_items, full[1].get_items
    found["read newest 7"] = partial(full[0].get_items, 7), partial(full[1].get_items, 7)
    found["pop"] = sdk.pop_item, ours.pop_item
    found["first write of a session"] = partial(_first, OpenAIConversationsSession, client), partial(_first_of_ours)
    return found


async def _by_a_worker(count: int) -> Operation:
    """Record, and have it delivered as a worker does, with a sync client: without the way through the queue."""
    from convsessions import operations
    from convsessions.delivery.threads import in_thread

    session = await operations.acreate_session()

    def work() -> None:
        operations.append_items(session.pk, messages(count))
        operations.deliver(session.pk, budget=600)

    await in_thread(work)
    return partial(in_thread, work)


async def _first(kind: Any, client: Any) -> None:
    await kind(openai_client=client).add_items(messages(3))


async def _first_of_ours() -> None:
    from convsessions.agents import DjangoConversationsSession

    await DjangoConversationsSession(key=f"first{time.time()}").add_items(messages(3))


async def _compare(
    name: str,
    pair: tuple[Operation | None, Operation],
    latency: float,
    remote: RemoteProcess,
    counts: Counts,
    rounds: int,
) -> Result:
    sdk, ours = (None if pair[0] is None else Side()), Side()
    for number in range(rounds):
        both = [(sdk, pair[0]), (ours, pair[1])]
        for side, operation in both if number % 2 else both[::-1]:
            if side is not None and operation is not None:
                await _measure(side, operation, remote, counts)
    return Result(name, latency, ours, sdk)


async def _measure(side: Side, operation: Operation, remote: RemoteProcess, counts: Counts) -> None:
    before, requests = counts.now(), (await asyncio.to_thread(remote.seen))["requests"]
    began = time.perf_counter()
    await operation()
    side.seconds.append(time.perf_counter() - began)
    spent = counts.now().since(before)
    side.requests = (await asyncio.to_thread(remote.seen))["requests"] - requests
    side.queries, side.commits = spent.queries, spent.commits
