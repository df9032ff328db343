"""Checks of the database that holds the journal. Those that ask it something run with ``--database`` only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.core import checks
from django.core.checks import CheckMessage, Tags, register
from django.db import connections

from convsessions.enqueue import sweep_schedule_is_missing
from convsessions.journal.locking import alias
from convsessions.models import ConversationSession


@register(Tags.database)
def check_sqlite(app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """W001, W008: on SQLite, BEGIN IMMEDIATE stands in for the row locks it lacks, and WAL lets readers be."""
    connection = connections[alias()]
    if connection.vendor != "sqlite":
        return []
    found: list[CheckMessage] = []
    options = f'DATABASES["{alias()}"]["OPTIONS"]'
    if connection.settings_dict["OPTIONS"].get("transaction_mode") != "IMMEDIATE":
        hint = f'Set {options}["transaction_mode"] = "IMMEDIATE".'
        message = "SQLite without BEGIN IMMEDIATE fails under concurrent writers."
        found.append(checks.Warning(message, hint=hint, id="convsessions.W001"))
    if alias() in (databases or ()) and _journal_mode(connection) == "delete":
        hint = f'Set {options}["init_command"] = "PRAGMA journal_mode=WAL;".'
        message = "SQLite without WAL lets readers and writers stop each other, and django-q2 lose results."
        found.append(checks.Warning(message, hint=hint, id="convsessions.W008"))
    return found


def _journal_mode(connection: Any) -> str:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        return str(cursor.fetchone()[0])


@register("convsessions")
def check_connections(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """W007, W009: connections that break, or that two processes would share."""
    found: list[CheckMessage] = []
    connection, name = connections[alias()], f'DATABASES["{alias()}"]'
    if apps.is_installed("django_q") and connection.settings_dict["OPTIONS"].get("pool"):
        hint = f'Remove {name}["OPTIONS"]["pool"] from the settings that qcluster runs with.'
        message = "The workers of qcluster share the connections of psycopg's pool after a fork, and mix up replies."
        found.append(checks.Warning(message, hint=hint, id="convsessions.W007"))
    # SQLite's connections do not break.
    persistent = connection.vendor != "sqlite" and connection.settings_dict["CONN_MAX_AGE"] != 0
    if persistent and not connection.settings_dict["CONN_HEALTH_CHECKS"]:
        hint = f'Set {name}["CONN_HEALTH_CHECKS"] = True.'
        message = "After a restart of the database, persistent connections fail once each."
        found.append(checks.Warning(message, hint=hint, id="convsessions.W009"))
    return found


@register("convsessions")
def check_isolation(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """W017: MariaDB and MySQL lock the gaps between rows at REPEATABLE READ, their own default, but not Django's."""
    connection = connections[alias()]
    level = connection.settings_dict["OPTIONS"].get("isolation_level", "read committed")
    if connection.vendor != "mysql" or str(level).lower() == "read committed":
        return []
    hint = f'Set DATABASES["{alias()}"]["OPTIONS"]["isolation_level"] = "read committed".'
    message = "At this isolation level, recording for different sessions at the same time ends in deadlocks."
    return [checks.Warning(message, hint=hint, id="convsessions.W017")]


@register(Tags.database)
def check_schedule(app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """W010: the sweep is scheduled, once convsessions was migrated."""
    if not any(sweep_schedule_is_missing(name) for name in databases or ()) or not _is_migrated():
        return []
    message = "Nobody looks for writes whose task was lost: the schedule of the sweep is missing."
    return [checks.Warning(message, hint="Run manage.py migrate, which makes it.", id="convsessions.W010")]


def _is_migrated() -> bool:
    table = ConversationSession._meta.db_table  # noqa: SLF001 - Django's documented model API
    return table in connections[alias()].introspection.table_names()
