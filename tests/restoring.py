"""A backup of the journal, and its restore, on any database: rows as they are, with their ids."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, models, transaction

from convsessions.models import ConversationSession, Reconciliation, RequestAttempt, WriteChunk, WriteIntent
from tests.histories import deliver_until_settled

TABLES: tuple[type[models.Model], ...] = (
    ConversationSession,
    WriteIntent,
    WriteChunk,
    RequestAttempt,
    Reconciliation,
)


DUMP = {
    "postgresql": ["pg_dump", "--format=custom"],
    "mysql": ["mariadb-dump", "--single-transaction"],
}
RESTORE = {
    "postgresql": ["pg_restore", "--clean", "--if-exists", "--single-transaction", "--dbname"],
    "mysql": ["mariadb"],
}


class Backup:
    """Made of what is committed when it is created."""

    def __init__(self) -> None:
        with transaction.atomic():
            self._rows: list[Any] = [row for table in TABLES for row in table._default_manager.order_by("pk")]

    def restore(self) -> None:
        with transaction.atomic():
            for table in reversed(TABLES):
                table._default_manager.all()._raw_delete(connection.alias)
            for row in self._rows:
                row.save_base(raw=True, force_insert=True)


class FileBackup:
    """Of an SQLite database: a copy of its file."""

    def __init__(self, folder: Path) -> None:
        self._copy = folder / "backup.sqlite3"
        self._copy_over(Path(connection.settings_dict["NAME"]), self._copy)

    def restore(self) -> None:
        self._copy_over(self._copy, Path(connection.settings_dict["NAME"]))

    def _copy_over(self, source: Path, target: Path) -> None:
        connection.close()  # the last one: it writes what is in the WAL file into the database, and removes that
        assert not source.with_name(f"{source.name}-wal").exists()
        shutil.copyfile(source, target)


class Dump:
    """Of a PostgreSQL or MariaDB database: by the tools that come with it, restored over what is there."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "dump"
        with self._file.open("wb") as out:
            self._run(DUMP, stdout=out)

    def restore(self) -> None:
        with self._file.open("rb") as dumped:
            self._run(RESTORE, stdin=dumped)

    def _run(self, commands: dict[str, list[str]], **streams: Any) -> None:
        connection.close()  # it would be in the way of a restore
        database, is_postgres = connection.settings_dict, connection.vendor == "postgresql"
        address = [f"--host={database['HOST']}", f"--port={database['PORT'] or (5432 if is_postgres else 3306)}"]
        login = [f"--username={database['USER']}" if is_postgres else f"--user={database['USER']}"]
        program, *options = commands[connection.vendor]
        command = [program, *address, *login, *options, database["NAME"]]
        password = {"PGPASSWORD": database["PASSWORD"], "MYSQL_PWD": database["PASSWORD"]}
        subprocess.run(command, env={**os.environ, **password}, check=True, timeout=60, **streams)


def as_operators_do(folder: Path) -> FileBackup | Dump:
    """A backup of the whole database. Skips the test where there is no tool for it."""
    if connection.vendor == "sqlite":
        return FileBackup(folder)
    missing = [tools[connection.vendor][0] for tools in (DUMP, RESTORE)]
    missing = [tool for tool in missing if not shutil.which(tool)]
    if missing:
        pytest.skip(f"there is no {missing[0]}")
    return Dump(folder)


def deliver_all(*writes: WriteIntent) -> list[str]:
    """Deliver each to its end; returns their states."""
    return [deliver_until_settled(write).state for write in writes]
