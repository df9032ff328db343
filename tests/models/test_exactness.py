"""Every JSON string survives byte for byte, and the database itself refuses rows that must not exist."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convsessions import operations
from convsessions.exceptions import IllegalMove
from convsessions.items import codec
from convsessions.models import ConversationSession, WriteChunk, WriteIntent
from convsessions.states import LEGAL_MOVES, WriteKind, WriteState
from tests.histories import append

NASTY = [
    "\x00",
    "\\u0000",
    "\U0001f600",
    "a\u0301",
    "\u202eabc",
    "' OR 1=1 --",
    "%s %(x)s",
    "\r\n\t",
    "\u2028",
    "é" * 3,
]


def stored_items(session, items):
    write = operations.append_items(session.pk, items)
    return [item for chunk in WriteChunk.objects.filter(write=write) for item in chunk.items]


@pytest.mark.django_db
@pytest.mark.parametrize("text", NASTY, ids=ascii)
def test_text_survives_the_journal(text):
    session = operations.create_session()
    items = [{"type": "message", "role": "user", "content": text}]
    assert stored_items(session, items) == items


@pytest.mark.django_db(transaction=True)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_text_survives_the_journal(text):
    session = operations.create_session()
    items = [{"type": "message", "role": "user", "content": text}]
    assert stored_items(session, items) == items


@pytest.mark.django_db
@pytest.mark.parametrize("number", [2**63, -(2**100), 10**300, 1.0, 0.1, -0.0, 5e-324], ids=str)
def test_numbers_survive_the_journal(number):
    session = operations.create_session()
    item = {"type": "future_thing", "value": number}
    [stored] = stored_items(session, [item])
    assert codec.encode(stored["value"]) == codec.encode(number)


@pytest.mark.django_db
def test_keys_keep_their_order():
    session = operations.create_session()
    item = {"role": "user", "type": "message", "content": "x"}
    [stored] = stored_items(session, [item])
    assert list(stored) == ["role", "type", "content"]


@pytest.fixture
def write(db):
    return append(operations.create_session(), 25)


def refuses(change):
    with pytest.raises(IntegrityError), transaction.atomic():
        change()


def test_the_database_refuses_two_active_writes_in_a_session(write):
    other = append(write.session, 1)
    WriteIntent.objects.filter(pk=write.pk).update(state="sending", generation=0)
    refuses(lambda: WriteIntent.objects.filter(pk=other.pk).update(state="ambiguous", generation=0))


@pytest.mark.parametrize(
    "values",
    [
        {"state": "nonsense"},
        {"state": "sending"},  # without a generation
        {"items_saved": 26},
        {"state": "saved"},  # without a settled time
        {"settled_at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)},  # while open
    ],
    ids=str,
)
def test_the_database_refuses_writes_that_contradict_themselves(write, values):
    refuses(lambda: WriteIntent.objects.filter(pk=write.pk).update(**values))


@pytest.mark.parametrize(
    "values", [{"state": "nonsense"}, {"state": "sending"}, {"item_count": 0}, {"item_count": 21}], ids=str
)
def test_the_database_refuses_chunks_that_could_not_be_reconciled(write, values):
    refuses(lambda: WriteChunk.objects.filter(write=write).update(**values))


def test_the_database_refuses_half_a_lease(write):
    refuses(lambda: ConversationSession.objects.update(lease_expires_at=timezone.now()))


def test_the_state_decides_what_is_open_active_and_needs_attention(write):
    table = {}
    for state in WriteState:
        settled_at = None if state in ("pending", "sending", "ambiguous") else timezone.now()
        WriteIntent.objects.filter(pk=write.pk).update(state=state, generation=0, settled_at=settled_at)
        now = WriteIntent.objects.get(pk=write.pk)
        table[state] = (now.is_open, now.is_active, now.needs_attention)
    assert table == {
        WriteState.PENDING: (True, None, None),
        WriteState.SENDING: (True, True, None),
        WriteState.AMBIGUOUS: (True, True, True),
        WriteState.SAVED: (None, None, None),
        WriteState.REFUSED: (None, None, None),
        WriteState.CANCELLED: (None, None, None),
    }


@pytest.mark.parametrize("state", WriteState)
def test_illegal_moves_fail_in_python(state):
    for to in WriteState:
        write, chunk = WriteIntent(kind=WriteKind.APPEND, state=state), WriteChunk(state=state)
        for row in (write, chunk):
            if to in LEGAL_MOVES[state]:
                row.move(to)
                assert row.state == to
                row.state = state
            else:
                with pytest.raises(IllegalMove):
                    row.move(to)
                assert row.state == state
