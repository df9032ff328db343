"""The commands as a test calls them."""

from __future__ import annotations

import json
from io import BytesIO, StringIO
from types import SimpleNamespace
from typing import Any

from django.core.management import call_command


def run(command: str, *arguments: Any) -> str:
    out = StringIO()
    call_command(command, *map(str, arguments), stdout=out)
    return out.getvalue()


def run_json(command: str, *arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(run(command, *arguments, "--json"))
    result.pop("seconds")
    return result


def stdin(monkeypatch: Any, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=BytesIO(content)))


def jsonl(items: list[Any]) -> bytes:
    """As the export writes it."""
    return b"".join(json.dumps(item, separators=(",", ":")).encode() + b"\n" for item in items)
