"""The parts of the demo's site: its database, a sandbox and a worker, and later the web."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from django.core.management import call_command

from convsessions.sandbox.testing import SandboxProcess

from .patience import Patience
from .processes import Service
from .screen import Screen


@dataclass(slots=True)
class Site:
    """The running parts, and what they are started with."""

    folder: Path
    screen: Screen
    patience: Patience
    sandbox: SandboxProcess
    stack: ExitStack
    worker: Service = field(init=False)

    @property
    def env(self) -> dict[str, str]:
        """No key: that makes the worker talk to a sandbox, which is this one."""
        return {**os.environ, "OPENAI_BASE_URL": self.sandbox.base_url}

    def start(self, name: str, *arguments: str) -> Service:
        service = self.stack.enter_context(Service(name, list(arguments), self.folder, self.env))
        self.patience.services.append(service)
        return service

    def start_worker(self) -> None:
        self.worker = self.start("worker", "qcluster")

    def kill_worker(self) -> None:
        self.patience.services.remove(self.worker)
        self.worker.kill()


@contextmanager
def running_site(folder: Path, screen: Screen, patience: Patience) -> Iterator[Site]:
    """The database, a sandbox and a worker; everything that was started ends with the block."""
    screen.say(f"Everything happens in {folder}, with a database of its own.")
    call_command("migrate", verbosity=0)
    with ExitStack() as stack:
        sandbox = stack.enter_context(SandboxProcess(folder))
        site = Site(folder, screen, patience, sandbox, stack)
        site.start_worker()
        screen.say(f"Started a sandbox of the Conversations API at {sandbox.base_url}, and a worker (qcluster).")
        yield site
