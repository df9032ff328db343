"""What authors record: before anything is sent, once per idempotency key, in one order."""

from __future__ import annotations

import threading
import uuid

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction

from convsessions import operations
from convsessions.exceptions import (
    ConversationTaken,
    ConvsessionsError,
    IdempotencyConflict,
    InvalidInput,
    InvalidItem,
    KeyTaken,
    SessionNotFound,
    WriteNotFound,
)
from convsessions.models import ConversationSession, WriteChunk, WriteIntent
from convsessions.states import WriteState
from tests.histories import append, messages

pytestmark = pytest.mark.django_db(transaction=True)


def in_threads(count, work):
    """Run `work` in `count` threads at once, each with a database connection of its own; returns results and errors."""
    barrier, results = threading.Barrier(count), []

    def run():
        try:
            barrier.wait()
            results.append(work())
        except ConvsessionsError as error:
            results.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_an_append_is_recorded_in_chunks_before_anything_is_sent(session):
    write = append(session, 45)

    assert (write.state, write.sequence, write.items_total) == (WriteState.PENDING, 1, 45)
    assert list(write.chunks.values_list("first_item", "item_count", "state")) == [
        (0, 20, "pending"),
        (20, 20, "pending"),
        (40, 5, "pending"),
    ]
    session.refresh_from_db()
    assert session.wake_at is not None


def test_an_append_of_nothing_is_saved_without_a_request(sandbox, session):
    write = operations.append_items(session.pk, [])
    operations.deliver(session.pk)

    assert write.state == WriteState.SAVED
    assert sandbox.requests() == []


@pytest.mark.parametrize("record", [operations.pop_item, operations.clear_session])
def test_pop_and_clear_of_a_session_without_a_conversation_send_no_request(sandbox, session, record):
    write = record(session.pk)
    operations.deliver(session.pk)

    assert operations.get_write(write.pk).state == WriteState.SAVED
    assert sandbox.requests() == []


def test_nothing_of_a_write_with_a_bad_item_is_recorded(session):
    items = messages(3)
    items[2]["content"] = [{"type": "input_text", "text": 5}]
    with pytest.raises(InvalidItem) as caught:
        operations.append_items(session.pk, items)

    assert caught.value.field == "items[2].content[0].text"
    assert not WriteIntent.objects.exists()


def test_a_write_that_is_rolled_back_rings_no_doorbell(session, quick):
    quick["DISPATCHER"] = "tests.journal.test_recording.remember"
    RUNG.clear()
    with transaction.atomic():
        append(session, 1)
        transaction.set_rollback(True)
    assert RUNG == []

    append(session, 1)
    assert [str(session.pk)] == RUNG


RUNG: list[str] = []


def remember(session_id: str) -> None:
    RUNG.append(session_id)


def test_the_same_key_and_body_is_one_write(session):
    first = operations.append_items(session.pk, messages(3), idempotency_key="k")
    second = operations.append_items(session.pk, messages(3), idempotency_key="k")

    assert first.pk == second.pk
    assert WriteChunk.objects.count() == 1


@pytest.mark.parametrize(
    "other",
    [
        lambda pk: operations.append_items(pk, messages(4), idempotency_key="k"),
        lambda pk: operations.pop_item(pk, idempotency_key="k"),
    ],
    ids=["other items", "other kind"],
)
def test_the_same_key_with_another_body_is_refused(session, other):
    operations.append_items(session.pk, messages(3), idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        other(session.pk)


@pytest.mark.parametrize("other", ["K", "k ", " k"])
def test_keys_that_a_collation_might_confuse_are_different(session, other):
    first = operations.append_items(session.pk, messages(3), idempotency_key="k")
    assert operations.append_items(session.pk, messages(4), idempotency_key=other).pk != first.pk


def test_a_concurrent_first_use_of_a_key_is_one_write(session):
    results = in_threads(10, lambda: operations.append_items(session.pk, messages(25), idempotency_key="same").pk)
    assert len(set(results)) == 1
    assert WriteIntent.objects.get().pk == results[0]


def test_concurrent_appends_get_distinct_sequences(session):
    results = in_threads(8, lambda: append(session, 3).sequence)
    assert sorted(results) == list(range(1, 9))


def test_a_session_key_is_unique_per_owner():
    ada = get_user_model().objects.create(username="ada")
    operations.create_session(owner=ada, key="main")
    operations.create_session(key="main")
    operations.create_session(owner=ada, key="Main")
    for owner in (ada, None):
        with pytest.raises(KeyTaken):
            operations.create_session(owner=owner, key="main")
    assert operations.get_session(owner=ada, key="main").owner == ada


def test_concurrent_creations_with_one_key_make_one_session():
    results = in_threads(6, lambda: operations.create_session(key="main").pk)
    assert sum(isinstance(result, uuid.UUID) for result in results) == 1
    assert sum(isinstance(result, KeyTaken) for result in results) == 5


def test_deleting_an_account_keeps_its_journal_apart_from_others():
    for name in ("ada", "bob"):
        user = get_user_model().objects.create(username=name)
        operations.create_session(owner=user, key="main")
        user.delete()
    assert ConversationSession.objects.filter(owner=None, key="main").count() == 2


def test_one_conversation_belongs_to_one_session():
    operations.create_session(conversation_id="conv_1")
    with pytest.raises(ConversationTaken):
        operations.create_session(conversation_id="conv_1")


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("key", {"key": "a\x00b"}),
        ("key", {"key": ""}),
        ("key", {"key": "k" * 256}),
        ("conversation_id", {"conversation_id": "conv_\n"}),
        ("metadata", {"metadata": {str(n): "" for n in range(17)}}),
        ("metadata.topic", {"metadata": {"topic": 5}}),
        ("metadata.topic", {"metadata": {"topic": "\ud800"}}),
    ],
)
def test_bad_values_are_named_and_nothing_is_recorded(db, field, values):
    with pytest.raises(InvalidInput) as caught:
        operations.create_session(**values)
    assert caught.value.field == field
    assert not ConversationSession.objects.exists()


def test_unknown_ids_are_told(db):
    with pytest.raises(SessionNotFound):
        operations.append_items(uuid.uuid4(), messages(1))
    with pytest.raises(WriteNotFound):
        operations.get_write(uuid.uuid4())
