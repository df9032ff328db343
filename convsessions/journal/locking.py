"""The lock of a session, and the clock by which leases and deadlines run."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from django.conf import settings
from django.db import connections, router
from django.db.models import DateTimeField, Func
from django.utils import timezone

from convsessions.exceptions import SessionNotFound
from convsessions.models import ConversationSession
from convsessions.values import as_uuid


class DatabaseClock(Func):
    """The database's own clock at this moment, in UTC.

    Not django.db.models.functions.Now: on PostgreSQL that is the start of the statement, which may be long before the
    lock was granted, and on MySQL it is in the server's time zone.
    """

    template = "CURRENT_TIMESTAMP"
    output_field = DateTimeField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="CLOCK_TIMESTAMP()", **context)

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="UTC_TIMESTAMP(6)", **context)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(
            compiler, connection, template="STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f', 'NOW')", **context
        )


def alias() -> str:
    """The database of the journal, as the host's routers say."""
    return router.db_for_write(ConversationSession)


def lock_session(session_id: uuid.UUID, *, using: str) -> tuple[ConversationSession, dt.datetime]:
    """Lock the session's row; return it as it is now, and the database's time.

    Requires the caller's transaction on `using`. Raises SessionNotFound. `no_key` lets others insert rows that refer
    to the session meanwhile (a foreign key takes a share lock on it). On SQLite there is no row lock: BEGIN IMMEDIATE
    has locked the database already.
    """
    no_key = connections[using].features.has_select_for_no_key_update
    rows = ConversationSession.objects.using(using).select_for_update(no_key=no_key)
    locked: Any = rows.annotate(clock=DatabaseClock()).filter(pk=as_uuid(session_id, SessionNotFound)).first()
    if locked is None:
        raise SessionNotFound(f"no session {session_id}")
    return locked, _in_settings_zone(locked.clock, using)


def _in_settings_zone(moment: dt.datetime, using: str) -> dt.datetime:
    """`DatabaseClock` as Django represents moments: aware with USE_TZ, else naive local time."""
    connection = connections[using]
    if connection.vendor == "postgresql":
        return moment
    # SQLite and MySQL answered with a bare UTC time, which Django's converter took for one of the connection's zone.
    bare = timezone.make_naive(moment, connection.timezone) if timezone.is_aware(moment) else moment
    utc = bare.replace(tzinfo=dt.UTC)
    return utc if settings.USE_TZ else timezone.make_naive(utc)
