"""A journal of any size, made by PostgreSQL itself: sessions, writes, chunks, requests and reconciliations in SQL."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.utils import timezone

from convsessions.models import ConversationSession, Reconciliation, RequestAttempt, WriteChunk, WriteIntent

WRITES_PER_SESSION = 10
DAYS = 30
"""The writes are spread evenly over so many days up to now."""
OPEN, HELD, AMBIGUOUS, REFUSED = 1000, 20_000, 10_000, 500
"""One in so many writes; of the last write of a session only."""


def fill(writes: int) -> None:
    """`writes` writes, a tenth as many sessions, a chunk and a request each, and a reconciliation for one in 50."""
    now = f"'{timezone.now().isoformat()}'::timestamptz"
    at = f"({now} - (interval '{DAYS} days' * n / {writes}))"
    session = f"md5('session' || (n / {WRITES_PER_SESSION}))::uuid"
    last = f"n % {WRITES_PER_SESSION} = 0"
    state = (
        f"CASE WHEN {last} AND n % {AMBIGUOUS} = 0 THEN 'ambiguous' WHEN {last} AND n % {OPEN} = 0 THEN 'sending' "
        f"WHEN n % {REFUSED} = 3 THEN 'refused' ELSE 'saved' END"
    )
    settled = f"CASE WHEN {last} AND n % {OPEN} = 0 THEN NULL ELSE {at} + interval '1 second' * (n % 7) END"
    _insert(
        ConversationSession,
        writes // WRITES_PER_SESSION,
        id="md5('session' || n)::uuid",
        key="'key-' || n",
        key_hash="encode(sha256(convert_to('key-' || n, 'UTF8')), 'hex')",
        conversation_id="'conv_' || md5('c' || n)",
        created_at=at.replace(" n ", f" n * {WRITES_PER_SESSION} "),
        updated_at=at.replace(" n ", f" n * {WRITES_PER_SESSION} "),
        last_sequence=str(WRITES_PER_SESSION),
    )
    _insert(
        WriteIntent,
        writes,
        id="md5('write' || n)::uuid",
        session_id=session,
        sequence=f"{WRITES_PER_SESSION} - n % {WRITES_PER_SESSION}",
        kind="'append'",
        state=state,
        generation="0",
        items_total="3",
        items_saved="0",
        body_digest="''",
        error_code=f"CASE WHEN n % {AMBIGUOUS} = 0 THEN 'partial' ELSE '' END",
        hold_code=f"CASE WHEN n % {HELD} = {OPEN} THEN 'bad_key' ELSE '' END",
        created_at=at,
        started_at=at,
        settled_at=settled,
    )
    _insert(
        WriteChunk,
        writes,
        write_id="md5('write' || n)::uuid",
        first_item="0",
        item_count="3",
        payload="repeat('x', 300)",
        state=state,
        anchor="''",
        attempts="1",
        deadline_at=at,
        remote_ids="json_build_array('msg_' || md5('a' || n), 'msg_' || md5('b' || n), 'msg_' || md5('c' || n))::text",
        settled_at=settled,
    )
    _insert(
        RequestAttempt,
        writes,
        write_id="md5('write' || n)::uuid",
        operation="'append_items'",
        target_id="''",
        sent_at=at,
        deadline_at=at,
        outcome="CASE WHEN n % 50 = 0 THEN 'unknown' ELSE 'applied' END",
        request_id="'req_' || md5('r' || n)",
        finished_at=at,
    )
    _insert(
        Reconciliation,
        writes // 50,
        write_id="md5('write' || n * 50)::uuid",
        verdict="CASE WHEN n % 200 = 0 THEN 'partial' ELSE 'saved' END",
        resolution="CASE WHEN n % 400 = 0 THEN 'accept' ELSE '' END",
        evidence="'{}'",
        reason="''",
        created_at=at.replace(" n ", " n * 50 "),
    )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _insert(model: Any, count: int, **columns: str) -> None:
    """`count` rows: `columns` as SQL of n = 0 … count - 1, the others with the default of their field."""
    for field in model._meta.concrete_fields:
        if field.column not in columns and not field.generated and not field.primary_key:
            columns[field.column] = _default(field)
    names = ", ".join(f'"{name}"' for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{model._meta.db_table}" ({names}) '
            # The oldest first, as a site fills its tables: primary keys ascend with time.
            f"SELECT {', '.join(columns.values())} FROM generate_series({count - 1}, 0, -1) AS n"
        )


def _default(field: Any) -> str:
    value = field.get_db_prep_save(field.get_default(), connection)
    if value is None:
        return "NULL"
    return str(value).upper() if isinstance(value, bool | int) else "'" + str(value).replace("'", "''") + "'"
