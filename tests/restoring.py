"""A backup of the journal, and its restore, on any database: rows as they are, with their ids."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from django.db import connection, models, transaction

from convsessions.models import ConversationSession, Reconciliation, RequestAttempt, WriteChunk, WriteIntent

TABLES: tuple[type[models.Model], ...] = (
    ConversationSession,
    WriteIntent,
    WriteChunk,
    RequestAttempt,
    Reconciliation,
)


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
