"""Items for the checks, and what is compared of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def messages(count: int, *, prefix: str = "m") -> list[Any]:
    """`count` user messages with one text each: m0, m1, …"""
    return [{"type": "message", "role": "user", "content": f"{prefix}{index}"} for index in range(count)]


def text(item: Any) -> str:
    """The text of a message, whether its content came back as text or as parts."""
    content = item["content"]
    return str(content if isinstance(content, str) else content[0]["text"])


def texts(items: Iterable[Any]) -> list[str]:
    return [text(item) for item in items]


def together(batch: Sequence[str], history: Sequence[str]) -> bool:
    """Whether `batch` stands in `history` in its order, with nothing in between."""
    return any(list(history[at : at + len(batch)]) == list(batch) for at in range(len(history) - len(batch) + 1))
