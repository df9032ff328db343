"""Starting ``manage.py`` commands as processes, and ending them with everything that they started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
STOP_SECONDS = 5.0


class Service:
    """``manage.py`` with `arguments`, in a process group of its own; its output goes to ``<name>.log`` in `folder`.

    The group has two uses: a Ctrl-C on the terminal reaches the demo alone, which ends its services in order; and
    ``kill`` ends all processes of a cluster at once, as when the machine fails.
    """

    def __init__(self, name: str, arguments: list[str], folder: Path, env: Mapping[str, str]) -> None:
        self.name, self.log = name, folder / f"{name}.log"
        with self.log.open("a") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own manage.py
                [sys.executable, str(MANAGE), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(env),
                start_new_session=True,
            )
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Ask it to end, and end by force what is left of its group after five seconds. Not once it was killed."""
        if self._is_over:
            return
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """SIGKILL to all processes of the group: none of them can finish or record anything any more."""
        # PermissionError: where only the dead are left of a group, some systems say so in this way.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        # From here on its number may be given to processes that are none of ours.
        self._is_over = True
