"""Real `qcluster` processes on the test database."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from django.db import connection

from tests.histories import eventually

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc"]


def can_contain() -> bool:
    """Whether this machine lets us have namespaces of processes."""
    if not shutil.which("unshare"):
        return False
    return subprocess.run([*CONTAINER, "true"], capture_output=True, check=False).returncode == 0


def database_url() -> str:
    """DATABASE_URL of the database that the tests use."""
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{database['NAME']}"
    scheme = {"postgresql": "postgres", "mysql": "mysql"}[connection.vendor]
    login = f"{database['USER']}:{database['PASSWORD']}@" if database["USER"] else ""
    port = f":{database['PORT']}" if database["PORT"] else ""
    return f"{scheme}://{login}{database['HOST']}{port}/{database['NAME']}"


def site_environment(base_url: str, convsessions: Mapping[str, Any]) -> dict[str, str]:
    """The environment of a process of the site that the tests run in."""
    return site_settings(database_url(), base_url, convsessions)


def site_settings(database: str, base_url: str, convsessions: Mapping[str, Any]) -> dict[str, str]:
    """The environment of a process of a site: its database, its API, its settings."""
    values = {f"CONVSESSIONS_{name}": json.dumps(value) for name, value in convsessions.items() if name != "DISPATCHER"}
    queue = {"Q_WORKERS": "2", "Q_TIMEOUT": "40", "Q_RETRY": "120", "Q_POLL": "0.05"}
    site = {"DATABASE_URL": database, "OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": base_url}
    return {**os.environ, **queue, **values, **site}


class Cluster:
    """``manage.py qcluster`` in a process group of its own; killed with its workers at the end.

    `container`: whether it lives in one, as far as its processes are concerned, under `init`; without one it is
    process 1.
    """

    def __init__(
        self, environment: Mapping[str, str], log: Path, *, container: bool = False, init: Sequence[str] = ()
    ) -> None:
        self.environment, self.log = environment, log
        self._before = [*CONTAINER, *init] if container else []

    def __enter__(self) -> Self:
        self._out = self.log.open("a")
        self.process = subprocess.Popen(
            [*self._before, sys.executable, str(MANAGE), "qcluster"],
            env=self.environment,
            stdout=self._out,
            stderr=self._out,
            start_new_session=True,
        )
        eventually(lambda: "ready for work" in self.log.read_text(), seconds=30)
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()
        self._out.close()

    def kill(self) -> None:
        """SIGKILL to all of it at once, as when the machine dies."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def terminate(self) -> None:
        """SIGTERM to the main process, as a service manager should send it; waits until it has drained and ended.

        In a container: to its process 1.
        """
        pid = self.process.pid
        if self._before:
            (pid,) = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        os.kill(pid, signal.SIGTERM)
        self.process.wait(timeout=60)


def run_in_a_process(code: str, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """A Python process of the site that runs `code` after `django.setup()`."""
    prelude = "import django; django.setup()\n"
    return subprocess.Popen(
        [sys.executable, "-c", prelude + code],
        env={**environment, "DJANGO_SETTINGS_MODULE": "project.settings"},
        cwd=MANAGE.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
