"""One of several processes that add to and pop from one session: ``python -m tests.agents.racing KEY NAME SECONDS``.

Prints a line of JSON for each call: what it was, what came out, and when it began and ended.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from typing import Any

import django


async def race(key: str, name: str, seconds: float) -> None:
    from convsessions.agents import DjangoConversationsSession

    session = DjangoConversationsSession(key=key)
    choose, ends, number = random.Random(name), time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        number += 1
        if choose.random() < 0.6:
            count = choose.choice([1, 2, 5, 23])
            items = [{"type": "message", "role": "user", "content": f"{name}-{number}-{n}"} for n in range(count)]
            await told("add", session.add_items(items), [item["content"] for item in items])
        else:
            await told("pop", session.pop_item())


async def told(kind: str, call: Any, items: list[str] | None = None) -> None:
    began = time.monotonic()
    result = await call
    popped = result and result["content"][0]["text"]
    print(json.dumps({"kind": kind, "items": items or popped, "began": began, "ended": time.monotonic()}), flush=True)


if __name__ == "__main__":
    django.setup()
    asyncio.run(race(sys.argv[1], sys.argv[2], float(sys.argv[3])))
