"""The hot queries use their indexes, whatever the size of the journal: plans of PostgreSQL at 100,000 writes."""

from __future__ import annotations

import pytest
from django.db import connection
from django.utils import timezone

from convsessions.models import ConversationSession, WriteIntent

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="reads PostgreSQL's plans"),
]

WRITES, SESSIONS = 100_000, 1_000


@pytest.fixture
def big_journal():
    """1,000 sessions with 100 writes each, of which one in a thousand is open, one in ten thousand ambiguous."""
    now = timezone.now()
    sessions = [ConversationSession(wake_at=now if n % 20 == 0 else None) for n in range(SESSIONS)]
    ConversationSession.objects.bulk_create(sessions)
    rows = []
    for number in range(WRITES):
        session, sequence = sessions[number % SESSIONS], number // SESSIONS + 1
        state = "saved"
        if sequence == WRITES // SESSIONS:
            state = {0: "ambiguous", 1: "sending"}.get(number % 100, "saved")
        rows.append(
            WriteIntent(
                session=session,
                sequence=sequence,
                kind="append",
                state=state,
                generation=0,
                body_digest="",
                settled_at=now if state == "saved" else None,
            )
        )
    WriteIntent.objects.bulk_create(rows, batch_size=5_000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return sessions


def test_the_hot_queries_use_their_indexes(big_journal):
    queries = {
        "the head write of a session": (WriteIntent.objects.queue(big_journal[1].pk)[:1], "convsessions_queue"),
        "sessions with work": (ConversationSession.objects.due(timezone.now())[:100], "convsessions_wake"),
        "what needs attention": (
            WriteIntent.objects.needing_attention().order_by("-created_at")[:100],
            "convsessions_attention",
        ),
    }
    for name, (query, index) in queries.items():
        plan = query.explain(analyze=True)
        assert index in plan, f"{name}:\n{plan}"
        assert "Seq Scan" not in plan, f"{name}:\n{plan}"
