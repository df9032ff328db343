"""A Conversations API in memory, as cheap as Python makes it, so that what is measured is the client.

    python -m tests.benchmarks.remote [--latency 0.05]

It knows what the benchmarks ask for, and nothing else: no faults, no validation. `RemoteProcess` runs it in a process
of its own. The sandbox, a Django server that journals every request, costs several times as much CPU a request.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

CONTROL = "/control"


class Store:
    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.conversations: dict[str, list[dict[str, Any]]] = {}
        self.arrivals: list[float] = []
        self.at_work = self.most_at_work = 0
        self.numbers = itertools.count(1)

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, Any]:
        url = urlsplit(target)
        parts = url.path.strip("/").split("/")[1:]
        content = json.loads(body) if body else {}
        if len(parts) == 1:
            return 200, self._create(content)
        items = self.conversations.get(parts[1])
        if items is None:
            return 404, {"error": {"message": "no such conversation", "type": "invalid_request_error", "code": None}}
        if len(parts) == 2:
            return 200, self._conversation(parts[1], method)
        if method == "POST":
            stored = [self._stored(item) for item in content["items"]]
            items.extend(stored)
            return 200, _page(stored, has_more=False)
        if method == "DELETE":
            items[:] = [item for item in items if item["id"] != parts[3]]
            return 200, self._conversation(parts[1], "GET")
        return 200, _listed(items, {name: values[-1] for name, values in parse_qs(url.query).items()})

    def _create(self, content: dict[str, Any]) -> dict[str, Any]:
        name = f"conv_{next(self.numbers):048x}"
        self.conversations[name] = [self._stored(item) for item in content.get("items") or []]
        return self._conversation(name, "GET")

    def _conversation(self, name: str, method: str) -> dict[str, Any]:
        if method == "DELETE":
            del self.conversations[name]
            return {"id": name, "object": "conversation.deleted", "deleted": True}
        return {"id": name, "object": "conversation", "created_at": 1, "metadata": {}}

    def _stored(self, item: dict[str, Any]) -> dict[str, Any]:
        content = item["content"]
        if isinstance(content, str):
            content = [{"type": "input_text", "text": content}]
        stored = {"type": "message", **item, "content": content, "status": "completed"}
        return {**stored, "id": f"msg_{next(self.numbers):048x}"}

    def control(self, method: str, body: bytes) -> Any:
        if method == "POST":
            self.latency = json.loads(body)["latency"]
            self.arrivals.clear()
            self.most_at_work = 0
        return {"requests": len(self.arrivals), "arrivals": self.arrivals[-1000:], "most_at_work": self.most_at_work}


def _page(items: list[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    ends = {"first_id": items[0]["id"], "last_id": items[-1]["id"]} if items else {"first_id": None, "last_id": None}
    return {"object": "list", "data": items, **ends, "has_more": has_more}


def _listed(items: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
    limit, after = int(query.get("limit", "20")), query.get("after")
    ordered = items if query.get("order") == "asc" else items[::-1]
    start = 0 if after is None else next(index for index, item in enumerate(ordered) if item["id"] == after) + 1
    return _page(ordered[start : start + limit], has_more=len(ordered) > start + limit)


async def serve(store: Store) -> None:
    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await _answer(store, head, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


async def _answer(store: Store, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    arrived = time.time()
    lines = head.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    if target == CONTROL:
        status, reply = 200, store.control(method, body)
    else:
        store.arrivals.append(arrived)
        store.at_work += 1
        store.most_at_work = max(store.most_at_work, store.at_work)
        if store.latency:
            await asyncio.sleep(store.latency)
        store.at_work -= 1
        status, reply = store.answer(method, target, body)
    content = json.dumps(reply).encode()
    kind = b"content-type: application/json\r\nx-request-id: req_1\r\n"
    writer.write(b"HTTP/1.1 %d OK\r\n%bcontent-length: %d\r\n\r\n%b" % (status, kind, len(content), content))
    await writer.drain()


class RemoteProcess:
    """The server in a process of its own. `base_url`: what goes to ``OPENAI_BASE_URL``."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.remote"], stdout=subprocess.PIPE, text=True
        )
        self._address = self._process.stdout.readline().strip()
        self.base_url = f"{self._address}/v1"
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def begin(self, latency: float) -> None:
        """Answer after `latency` seconds from now on, and count from 0."""
        self._control(json.dumps({"latency": latency}).encode())

    def seen(self) -> dict[str, Any]:
        """`requests`: how many since `begin`; `arrivals`: when the last ones came; `most_at_work` at a time."""
        return self._control(None)

    def cpu_seconds(self) -> float:
        """What the server has used so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def _control(self, body: bytes | None) -> Any:
        request = urllib.request.Request(f"{self._address}{CONTROL}", body, method="POST" if body else "GET")
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.0)
    asyncio.run(serve(Store(parser.parse_args().latency)))
