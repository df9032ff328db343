"""Reading items from a file: one JSON object a line (JSONL), or one JSON array."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO

BATCH_BYTES = 8 * 1024 * 1024
"""Bytes of lines a batch, so that a batch of large items fits into memory and into the database's packets."""


class BadLine(Exception):
    """A line is no JSON. The message says where, and quotes nothing."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One item. where: ``line 17``, or ``element 17`` of an array, counted from 1. size: bytes of its JSON, about."""

    item: Any
    where: str
    size: int


def entries(stream: BinaryIO) -> Iterator[Entry]:
    """The items of `stream`, in order. Raises BadLine. Only an array is read as a whole before its first item."""
    for number, line in enumerate(stream, 1):
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if text.strip():
            if text.lstrip().startswith(b"["):
                return _array(text, number, stream)
            return _lines(number, text, stream)
    return iter(())


def batches(given: Iterator[Entry], count: int) -> Iterator[list[Entry]]:
    """`given` in lists of at most `count`, fewer where they are large; the same for the same input."""
    batch: list[Entry] = []
    size = 0
    for entry in given:
        if batch and (len(batch) == count or size + entry.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry.size
    if batch:
        yield batch


def _lines(number: int, first: bytes, rest: BinaryIO) -> Iterator[Entry]:
    for at, line in enumerate(chain([first], rest), number):
        if line.strip():
            yield Entry(_decoded(line.rstrip(), f"line {at}"), f"line {at}", len(line))


def _array(first: bytes, number: int, rest: BinaryIO) -> Iterator[Entry]:
    value = _decoded(first + rest.read(), "the array", number)
    return (Entry(item, f"element {at}", len(json.dumps(item))) for at, item in enumerate(value, 1))


def _decoded(text: bytes, where: str, first_line: int = 0) -> Any:
    # Raised outside the handlers, whose errors carry the text.
    try:
        return json.loads(text.decode("utf-8"))
    except UnicodeDecodeError:
        problem = "is not UTF-8"
    except RecursionError:
        problem = "is nested too deeply"
    except json.JSONDecodeError as error:
        at = f"line {first_line - 1 + error.lineno}, " if first_line else ""
        problem = f"is not JSON: {at}column {error.colno}"
    except ValueError:  # of int()
        problem = "holds a number with too many digits"
    raise BadLine(f"{where} {problem}")
