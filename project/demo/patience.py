"""Waiting for conditions instead of for times, and being interrupted only where nothing is left half started."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .processes import Service

T = TypeVar("T")

LIMIT = 120.0
"""Seconds that anything may take on a slow machine."""
PAUSE = 0.02
LOG_LINES = 20


class DemoFailed(Exception):
    """The demo could not do what it is to show."""


class Interrupted(Exception):
    """A signal asked the demo to end."""


class Patience:
    """Waits. A signal does not raise wherever the program happens to be: only the next wait ends with Interrupted."""

    def __init__(self) -> None:
        self.services: list[Service] = []
        self._asked = threading.Event()

    def watch_signals(self) -> None:
        """Take Ctrl-C, a closed terminal and SIGTERM as the wish to end; not what the caller ignores, as nohup does."""
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(signum) is not signal.SIG_IGN:
                signal.signal(signum, self._ask)

    def until(self, condition: Callable[[], T | None], what: str, *, seconds: float = LIMIT) -> T:
        """Wait until `condition` gives something true, and return that.

        Raises DemoFailed after `seconds`, or when a service has ended by itself; Interrupted after a signal.
        """
        ends = time.monotonic() + seconds
        while not (value := condition()):
            self._check_services()
            if time.monotonic() > ends:
                raise DemoFailed(f"{what}: this did not happen within {seconds:.0f} seconds.{self._tails()}")
            if self._asked.wait(PAUSE):
                raise Interrupted
        return value

    def until_interrupted(self) -> None:
        """Wait for a signal. Raises DemoFailed when a service ends by itself."""
        while not self._asked.wait(0.2):
            self._check_services()

    def _ask(self, *_: Any) -> None:
        self._asked.set()

    def _check_services(self) -> None:
        ended = [service.name for service in self.services if not service.is_running]
        if ended:
            raise DemoFailed(f"The {' and the '.join(ended)} ended by itself.{self._tails()}")

    def _tails(self) -> str:
        return "".join(f"\n--- {service.name} ---\n{_tail(service)}" for service in self.services)


def _tail(service: Service) -> str:
    lines: Sequence[str] = service.log.read_text(errors="replace").splitlines()
    return "\n".join(lines[-LOG_LINES:])
