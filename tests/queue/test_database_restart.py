"""A database that is really restarted while a worker delivers: a PostgreSQL of the test's own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from convsessions.sandbox.testing import SandboxProcess
from tests.histories import eventually, messages, texts

from .cluster import MANAGE, site_settings

pytest.importorskip("psycopg")

BINARIES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
MISSING = BINARIES is None or shutil.which("runuser") is None or os.geteuid() != 0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(MISSING and not os.environ.get("CI"), reason="needs PostgreSQL's server and root"),
]

RECORD = """
from convsessions import operations
from tests.histories import messages
write = operations.append_items(operations.create_session().pk, messages(200))
print(write.pk, flush=True)
"""
LOOK = """
import json, sys
from convsessions.models import WriteIntent
write = WriteIntent.objects.select_related("session").get(pk=sys.argv[1])
print(json.dumps([write.state, write.items_saved, write.session.conversation_id]))
"""


class Postgres:
    """A server in `folder`, on a free port of 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        shutil.chown(folder, "postgres")
        self._run("initdb", "-A", "trust", "-U", "root", "-D", str(folder / "data"))

    @property
    def url(self) -> str:
        return f"postgres://root@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        self._run(
            "pg_ctl", "-D", str(self.folder / "data"), "-w", "-l", str(self.folder / "log"), "-o", options, "start"
        )

    def stop(self) -> None:
        """At once, with every connection, as in a crash."""
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", "immediate", "stop")

    def _run(self, binary: str, *arguments: str) -> None:
        command = ["runuser", "-u", "postgres", "--", str(BINARIES / binary), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", timeout=60)


@pytest.fixture
def postgres():
    # Not below pytest's own folder, which only root may enter.
    with tempfile.TemporaryDirectory(prefix="convsessions-postgres-") as folder:
        server = Postgres(Path(folder))
        server.start()
        yield server
        server.stop()


def in_the_site(environment, code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", "import django; django.setup()\n" + code, *arguments],
        env={**environment, "DJANGO_SETTINGS_MODULE": "project.settings"},
        cwd=MANAGE.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()[-1]


def test_a_restart_of_the_database_in_the_middle_of_an_upload_loses_and_doubles_nothing(
    postgres, sandbox: SandboxProcess, quick, tmp_path
):
    environment = site_settings(postgres.url, sandbox.base_url, {**quick, "LEASE_GRACE": 2.0})
    manage = [sys.executable, str(MANAGE)]
    subprocess.run([*manage, "migrate", "-v", "0"], env=environment, check=True, timeout=120)
    write_id = in_the_site(environment, RECORD)
    sandbox.settings(latency=0.15)
    with (tmp_path / "worker.log").open("w") as log:
        worker = subprocess.Popen([*manage, "deliver", "--watch", "0.2"], env=environment, stdout=log, stderr=log)
        try:
            eventually(lambda: len(sandbox.requests()) > 3)
            postgres.stop()
            postgres.start()
            eventually(lambda: worker.poll() is not None or state_of(environment, write_id)[0] == "saved")
            if worker.poll() is not None:  # a worker may die of it; a service manager starts it again
                worker = subprocess.Popen(
                    [*manage, "deliver", "--watch", "0.2"], env=environment, stdout=log, stderr=log
                )
            state, saved, conversation_id = eventually(lambda: settled(environment, write_id))
        finally:
            worker.kill()
            worker.wait()
    sandbox.settings(latency=0)

    assert (state, saved) == ("saved", 200)
    assert texts(sandbox.items(conversation_id)) == texts(messages(200))


def state_of(environment, write_id):
    return json.loads(in_the_site(environment, LOOK, write_id))


def settled(environment, write_id):
    found = state_of(environment, write_id)
    return found if found[0] not in ("pending", "sending") else None
