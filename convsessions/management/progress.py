"""A bar on a terminal, and nothing anywhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

WIDTH = 30


def counting(stream: Any, what: str) -> Callable[[int, int], None]:
    """What an operation calls with the number of things done and their total; `stream`, `what`: as in `Bar`."""

    def show(done: int, total: int) -> None:
        if stream.isatty():
            filled = WIDTH * done // max(done, total, 1)
            end = "\n" if done >= total else ""
            stream.write(f"\r[{'#' * filled:<{WIDTH}}] {done}/{total} {what}", ending=end)
            stream.flush()

    return show


class Bar:
    """`stream`: a command's stderr. `what`: the things that are counted. `total`: 0 where it is not known."""

    def __init__(self, stream: Any, what: str, total: int = 0) -> None:
        self._stream, self._what, self._total = stream, what, total

    def show(self, count: int, share: float | None = None) -> None:
        """`count` of them are done, and `share` (0..1) of the work; by default the count's share of the total."""
        if not self._stream.isatty():
            return
        if share is None and self._total:
            share = count / max(self._total, count)
        drawn = "" if share is None else f"[{'#' * int(WIDTH * share):<{WIDTH}}] {share:4.0%} "
        self._stream.write(f"\r{drawn}{count:,} {self._what} ", ending="")
        self._stream.flush()

    def end(self) -> None:
        if self._stream.isatty():
            self._stream.write("")
