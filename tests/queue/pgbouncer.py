"""A PgBouncer of the test's own, in transaction mode, in front of the server of the tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Self

from django.db import connection

BINARY = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


class PgBouncer:
    """Listens on a free port of 127.0.0.1. `pool`: connections to the server that all clients share."""

    def __init__(self, folder: Path, *, pool: int = 4) -> None:
        server = connection.settings_dict
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"postgres://{server['USER']}@127.0.0.1:{self.port}/{server['NAME']}"
        self.config = folder / "pgbouncer.ini"
        (folder / "users.txt").write_text(f'"{server["USER"]}" "{server["PASSWORD"]}"\n')
        self.config.write_text(
            f"[databases]\n* = host={server['HOST'] or '/var/run/postgresql'} port={server['PORT'] or 5432}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {folder / 'users.txt'}\npool_mode = transaction\n"
            f"default_pool_size = {pool}\nmax_client_conn = 500\nlogfile = {folder / 'pgbouncer.log'}\n"
        )
        # It refuses to run as root, and cannot look into pytest's folders as anybody else.
        self.user = "postgres" if os.geteuid() == 0 else None
        for path in (folder, self.config, folder / "users.txt"):
            if self.user:
                shutil.chown(path, self.user)

    def __enter__(self) -> Self:
        as_user = ["runuser", "-u", self.user, "--"] if self.user else []
        self.process = subprocess.Popen([*as_user, str(BINARY), str(self.config)], stderr=subprocess.DEVNULL)
        return self

    def answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def __exit__(self, *exc: object) -> None:
        self.process.terminate()
        self.process.wait(10)
