"""Somebody else's site: begun with `startproject`, and mounted with the lines of the README, in an environment of its
own. A variant is one more settings module in it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.histories import eventually

from .interpreters import ROOT, Environment

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"<!-- test: ([a-z-]+) -->\n```[a-z]+\n(.*?)```", TEXT, re.DOTALL))
PASSWORD = "correct horse"
QUICK = (
    "CONVSESSIONS = {'REQUEST_TIMEOUT': 2, 'LEASE_GRACE': 1, 'SETTLE_SECONDS': 0.5, 'RETRY_BACKOFF': (0.2, 2)}\n"
    "if 'Q_CLUSTER' in globals():\n    Q_CLUSTER |= {'poll': 0.05}\n"
)
"""Only so that nobody waits half a minute for a deadline to pass."""
SET_UP = """
import django
django.setup()
from django.contrib.auth import get_user_model
from django.core.management import call_command
for app in {apps}:
    call_command("makemigrations", app, verbosity=0)
for database in {databases}:
    call_command("migrate", verbosity=0, database=database)
call_command("makemigrations", check=True, dry_run=True)
call_command("check", fail_level="WARNING", databases={databases})
get_user_model().objects.create_superuser("root", "root@example.com", {password!r})
"""
"""In one process, for starting a second one takes longer than all of this."""
OURS = ("DJANGO_", "CONVSESSIONS_", "DATABASE_URL", "PYTHONPATH", "OPENAI_", "VIRTUAL_ENV", "COV_", "COVERAGE_")


@dataclass(frozen=True)
class Variant:
    """`settings`: appended to the site's own; `files`: further modules of the site; both are Python code."""

    settings: str = ""
    files: dict[str, str] = field(default_factory=dict)
    admin: str = "/admin/"
    admin_name: str = "admin"
    api: str | None = "/api/"
    has_queue: bool = True
    databases: tuple[str, ...] = ("default",)
    own_migrations: tuple[str, ...] = ()


class ForeignSite:
    def __init__(self, folder: Path, environment: Environment, api_url: str) -> None:
        self.folder, self.python = folder, environment.python
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        self._env = {**kept, "OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": api_url, "PYTHONUNBUFFERED": "1"}
        self.settings, self.address = "host.settings", ""

    def start_project(self) -> None:
        self.run("-m", "django", "startproject", "host", str(self.folder))
        for name, blocks in (("settings", ("mount-settings", "mount-sqlite")), ("urls", ("mount-urls",))):
            with (self.folder / "host" / f"{name}.py").open("a") as module:
                module.write("\n" + "".join(BLOCKS[block] for block in blocks))

    def become(self, name: str, variant: Variant) -> None:
        """Run with the settings of a variant from now on, on new databases, with an administrator.

        Fails where the README's lines bring a warning, or models that the migrations do not know.
        """
        for path, code in variant.files.items():
            target = self.folder / path
            target.parent.mkdir(exist_ok=True)
            target.write_text(code)
        start = "from host.settings import *\n"
        files = f"DATABASES['default']['NAME'] = BASE_DIR / '{name}.sqlite3'\n"
        (self.folder / "host" / f"as_{name}.py").write_text(start + files + QUICK + variant.settings)
        self.settings = f"host.as_{name}"
        self.run("-c", SET_UP.format(apps=variant.own_migrations, databases=variant.databases, password=PASSWORD))

    def manage(self, *arguments: str, **env: str) -> str:
        return self.run("manage.py", *arguments, **env)

    def run_python(self, code: str) -> list[str]:
        """The lines that `code` prints in a process of the site."""
        return self.run("-c", f"import django\ndjango.setup()\n{code}").splitlines()

    def run(self, *arguments: str, **env: str) -> str:
        done = subprocess.run(
            [self.python, *arguments], env=self._environment(**env), cwd=self.folder, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """With Django's own server on a free port; its address is in `address`."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        with self.running("runserver", "--noreload", f"127.0.0.1:{port}"):
            eventually(self._answers)
            yield

    @contextlib.contextmanager
    def running(self, *arguments: str) -> Iterator[Path]:
        """With a command that goes on until it is stopped; gives the file of its output."""
        with self.launched("manage.py", *arguments) as log:
            yield log

    @contextlib.contextmanager
    def launched(self, *arguments: str) -> Iterator[Path]:
        """As `running`, for any Python program."""
        log = self.folder / f"{self.settings}-{Path(arguments[1]).name}.log"
        with log.open("a") as out:
            process = subprocess.Popen(
                [self.python, *arguments], env=self._environment(), cwd=self.folder, stdout=out,
                stderr=out, start_new_session=True,
            )  # fmt: skip
        try:
            yield log
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _environment(self, **env: str) -> dict[str, str]:
        return {**self._env, "DJANGO_SETTINGS_MODULE": self.settings, **env}

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/nothing", timeout=10):
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
