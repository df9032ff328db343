"""What every benchmark runs in: the site of project/ on a database of its own, and a remote that answers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django

from .remote import RemoteProcess


@contextmanager
def site(**settings: object) -> Iterator[RemoteProcess]:
    """A test database beside that of DATABASE_URL, made and dropped, and the remote. `settings`: of CONVSESSIONS."""
    with tempfile.TemporaryDirectory() as folder, RemoteProcess() as remote:
        os.environ.update(DJANGO_SETTINGS_MODULE="project.settings", OPENAI_API_KEY="sk-test", DJANGO_DEBUG="0")
        os.environ["DJANGO_SECRET_KEY"] = "the same in every process of this benchmark, and of no other use"
        os.environ["OPENAI_BASE_URL"] = remote.base_url
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{folder}/bench.sqlite3")
        for name, value in {"DISPATCHER": "convsessions.enqueue.dispatch_nowhere", **settings}.items():
            os.environ.setdefault(f"CONVSESSIONS_{name}", str(value))
        django.setup()
        with _database(Path(folder)):
            yield remote


@contextmanager
def _database(folder: Path) -> Iterator[None]:
    from django.db import connection
    from django.test.utils import setup_databases, teardown_databases

    from convsessions.delivery import threads

    if connection.vendor == "sqlite":
        connection.settings_dict["TEST"]["NAME"] = str(folder / "test.sqlite3")
    old = setup_databases(verbosity=0, interactive=False)
    try:
        yield
    finally:
        threads.close()
        teardown_databases(old, verbosity=0)
