"""Real workers, killed at random and started again, as a supervisor and a power cut would."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"

COMMANDS = (["qcluster"], ["deliver", "--watch", "0.2"])
"""A site may run either, or both at once."""


class Workers:
    """`count` worker processes. `kill_one` kills one of them, with its children, and starts it again."""

    def __init__(self, count: int, environment: Mapping[str, str], log: Path, seed: int) -> None:
        self.environment, self.log, self.kills = environment, log, 0
        self._commands = [COMMANDS[index % len(COMMANDS)] for index in range(count)]
        self._processes: list[subprocess.Popen[bytes]] = []
        self._draw = random.Random(f"kills {seed}")

    def __enter__(self) -> Self:
        self._out = self.log.open("ab")
        self._processes = [self._start(command) for command in self._commands]
        return self

    def __exit__(self, *exc: object) -> None:
        for process in self._processes:
            self._kill(process)
        self._out.close()

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, str(MANAGE), *command],
            env=dict(self.environment),
            stdout=self._out,
            stderr=self._out,
            start_new_session=True,
        )

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def kill_one(self) -> None:
        index = self._draw.randrange(len(self._processes))
        self._kill(self._processes[index])
        self._processes[index] = self._start(self._commands[index])
        self.kills += 1

    def killing(self, kills: int, pause: float) -> Killer:
        return Killer(self, kills, pause)


class Killer(threading.Thread):
    """Kills `kills` workers, one every `pause` seconds."""

    def __init__(self, workers: Workers, kills: int, pause: float) -> None:
        super().__init__(daemon=True)
        self.workers, self.kills, self.pause = workers, kills, pause

    def run(self) -> None:
        for _ in range(self.kills):
            time.sleep(self.pause)
            self.workers.kill_one()
