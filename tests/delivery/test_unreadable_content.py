"""Content that the present keys cannot decrypt: the write is held for a person, and nothing is decided without it."""

from __future__ import annotations

import asyncio
import datetime as dt

import pytest
from asgiref.sync import async_to_sync
from cryptography.fernet import Fernet
from django.db import connection

from convsessions import operations
from convsessions.delivery import protocol
from convsessions.exceptions import ContentUnreadable, WriteNotSettled
from convsessions.models import ConversationSession, Reconciliation, WriteChunk, WriteIntent
from convsessions.remote import clients, gateway
from convsessions.states import WriteState
from tests.histories import append, append_requests, messages, remote_texts
from tests.keys import HELD, hold_of, new_key, now
from tests.restoring import Backup

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def small_chunks(quick):
    quick["CHUNK_ITEMS"] = 3


def state_of(write):
    return now(write).state


def go_on(write, keys):
    """What a person does: put the key back, Retry now."""
    keys.find()
    operations.retry_write(write.pk, reason="the key is back")
    operations.deliver(write.session_id)
    return now(write)


def spoil(chunk: WriteChunk) -> None:
    """As if the content of this chunk alone were of a key that is lost."""
    sealed = "enc:" + Fernet(new_key()).encrypt(b"[]").decode()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE convsessions_writechunk SET payload = %s WHERE id = %s", [sealed, chunk.pk])


def inline(session):
    with pytest.raises(WriteNotSettled):
        async_to_sync(operations.write_through)(lambda: append(session, 1, prefix="later"), patience=5.0)


WORKERS = {
    "deliver": lambda session: operations.deliver(session.pk),
    "adeliver": lambda session: async_to_sync(operations.adeliver)(session.pk),
    "deliver_ready": lambda session: operations.deliver_ready(5),
    "inline": inline,
}


@pytest.mark.parametrize("worker", WORKERS.values(), ids=WORKERS)
def test_a_write_whose_key_is_gone_is_held_and_goes_on_once_it_is_back(sandbox, session, keys, worker):
    write = append(session, 4)
    keys.lose()
    worker(session)

    assert hold_of(write) == HELD
    assert (now(write).state, now(write).error_code, now(write).failures) == ("pending", "content_unreadable", 0)
    assert sandbox.requests() == []
    session.refresh_from_db()
    assert (session.lease_token, session.wake_at) == (None, now(write).next_attempt_at)

    assert go_on(write, keys).state == WriteState.SAVED
    assert remote_texts(sandbox, session)[:4] == ["m0", "m1", "m2", "m3"]
    assert (now(write).hold_code, now(write).needs_attention) == ("", None)


@pytest.mark.parametrize("cipher", [None, "convsessions.ciphers.fernet"], ids=["no cipher", "no keys"])
def test_so_is_one_where_the_site_has_no_key_at_all(sandbox, session, keys, quick, cipher):
    write = append(session, 1)
    quick["CIPHER"], quick["CIPHER_KEYS"] = cipher, []
    operations.deliver(session.pk)
    assert hold_of(write) == HELD
    quick["CIPHER"] = "convsessions.ciphers.fernet"
    assert go_on(write, keys).state == WriteState.SAVED


@pytest.mark.parametrize("work", ["deliver", "ready", "sweep"])
def test_other_sessions_are_served_meanwhile(sandbox, session, keys, work):
    unreadable = append(session, 1)
    keys.lose()
    others = [append(operations.create_session(), 1) for _ in range(3)]
    if work == "ready":
        operations.deliver_ready(2)
    else:
        operations.sweep()
        for session_id in [session.pk, *(write.session_id for write in others)]:
            operations.deliver(session_id)
    assert hold_of(unreadable) == HELD
    assert [now(write).state for write in others] == ["saved"] * 3
    assert operations.due_sessions() == []


@pytest.mark.parametrize("stored", [True, False], ids=["it was stored", "it was not"])
def test_a_request_in_flight_is_not_decided_without_its_content(sandbox, session, keys, stored):
    """Neither saved nor absent, however often it is tried; with the key, the history decides."""
    sandbox.fault("lost_after" if stored else "lost_before", operation="append_items")
    write = append(session, 2)
    while not write.chunks.filter(state=WriteState.SENDING, requests__outcome="unknown").exists():
        operations.deliver(session.pk, budget=0)
    keys.lose()
    for _ in range(2):
        operations.retry_write(write.pk)
        operations.deliver(session.pk)
        assert hold_of(write) == HELD
        assert (now(write).state, now(write).chunks.get().state) == ("sending", "sending")
    assert not Reconciliation.objects.exclude(verdict="").exists()

    assert go_on(write, keys).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == ["m0", "m1"]
    assert len(append_requests(sandbox, session)) == (1 if stored else 2)


def test_what_was_saved_stays_saved_where_the_next_chunk_cannot_be_read(sandbox, session, keys):
    write = append(session, 9)
    spoil(write.chunks.get(first_item=3))
    operations.deliver(session.pk)
    assert hold_of(write) == HELD
    assert now(write).items_saved == 3
    assert [chunk.state for chunk in write.chunks.all()] == ["saved", "pending", "pending"]
    assert remote_texts(sandbox, session) == ["m0", "m1", "m2"]


def test_a_chunk_that_another_write_could_explain_waits_for_that_ones_content(sandbox, session, keys):
    """To find whether a rival explains the run as well, the rival's items are needed."""
    sandbox.fault("lost_before", operation="append_items")
    first = append(session, 1, prefix="first")
    operations.deliver(session.pk)
    assert first.chunks.get().resent
    sandbox.fault("lost_after", operation="append_items")
    second = append(session, 1, prefix="second")
    while not second.chunks.filter(state=WriteState.SENDING).exists():
        operations.deliver(session.pk, budget=0)
    spoil(first.chunks.get())
    operations.deliver(session.pk)
    assert (hold_of(second), now(second).state) == (HELD, "sending")


def test_an_item_that_is_refused_is_sent_again_where_what_is_around_it_cannot_be_read(sandbox, session, keys, quick):
    """The refusal came while the key was there; to cut the chunk around the item takes its content."""
    quick["REQUEST_TIMEOUT"] = 5.0
    sandbox.fault("error_before", operation="append_items", status=400, param="items[1]", times=1)
    write = operations.append_items(session.pk, messages(3), on_refusal="skip")
    delivery = Slowly(session)
    delivery.send(delivery.answer())  # the conversation is created
    outcome = delivery.answer()
    keys.lose()
    delivery.end(outcome)

    assert hold_of(write) == HELD
    (attempt,) = write.requests.filter(operation="append_items")
    assert (attempt.outcome, attempt.status) == ("not_applied", 400)
    assert [(chunk.state, chunk.item_count) for chunk in write.chunks.defer("payload")] == [("pending", 3)]
    assert remote_texts(sandbox, session) == []
    assert go_on(write, keys).state == WriteState.SAVED


class Slowly:
    """A delivery of which a test carries out one request after the other."""

    def __init__(self, session) -> None:
        self._client = clients.client_for(session)
        self._delivery = protocol.deliver(session.pk, using="default")
        self.request = next(self._delivery)

    def answer(self):
        return gateway.perform(self.request, self._client)

    def send(self, outcome) -> None:
        self.request = self._delivery.send(outcome)

    def end(self, outcome) -> None:
        with pytest.raises(StopIteration):
            self._delivery.send(outcome)


def test_a_refused_write_that_was_saved_in_part_waits_with_its_half_pairs(sandbox, session, keys):
    write = append(session, 6)
    sandbox.fault("error_before", operation="append_items", status=400, param="items", skip=1, times=30)
    delivery = Slowly(session)
    delivery.send(delivery.answer())
    delivery.send(delivery.answer())
    refused = delivery.answer()
    keys.lose()
    delivery.end(refused)
    assert (hold_of(write), now(write).items_saved, now(write).state) == (HELD, 3, "sending")
    assert go_on(write, keys).state == WriteState.REFUSED


def test_a_write_that_ends_with_a_look_for_copies_waits_with_that(sandbox, session, keys, quick):
    """Every chunk is saved, and stays so; whether a copy stands there takes the content to tell."""
    quick["VERIFY_WRITES"] = True
    write = append(session, 2)
    delivery = Slowly(session)
    delivery.send(delivery.answer())
    applied = delivery.answer()
    keys.lose()
    delivery.end(applied)
    assert (hold_of(write), now(write).state, now(write).items_saved) == (HELD, "sending", 2)
    assert now(write).chunks.get().state == WriteState.SAVED
    assert go_on(write, keys).state == WriteState.SAVED


def test_a_cancellation_that_has_to_say_what_it_leaves_behind_waits_for_the_content(sandbox, session, keys):
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "1"}
    write = operations.append_items(session.pk, [call, *messages(3), output])
    delivery = Slowly(session)
    delivery.send(delivery.answer())
    applied = delivery.answer()
    keys.lose()
    delivery.end(applied)
    operations.cancel_write(write.pk)
    operations.deliver(session.pk)
    assert (hold_of(write), now(write).state, now(write).items_saved) == (HELD, "sending", 3)
    assert go_on(write, keys).state == WriteState.CANCELLED
    assert [(half["item"], half["missing"]) for half in now(write).half_pairs] == [(0, 4)]


def test_what_was_open_in_a_backup_is_not_decided_without_its_content_either(sandbox, session, keys):
    append(session, 1, prefix="first")
    operations.deliver(session.pk)
    write = append(session, 2)
    backup = Backup()
    operations.deliver(session.pk)
    backup.restore()
    operations.after_restore()
    keys.lose()
    operations.deliver(session.pk)
    assert hold_of(write) == HELD
    assert not now(write).settled
    assert go_on(write, keys).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == ["first0", "m0", "m1"]


def test_an_ambiguous_write_that_is_checked_again_is_held(sandbox, session, keys):
    sandbox.fault("rewritten", operation="append_items")
    write = append(session, 2)
    operations.deliver(session.pk)
    assert now(write).state == WriteState.AMBIGUOUS
    keys.lose()
    operations.reconcile_write(write.pk, reason="look again")
    operations.deliver(session.pk)
    assert (hold_of(write), now(write).state) == (HELD, "sending")
    assert go_on(write, keys).state == WriteState.AMBIGUOUS


def test_a_pop_that_cannot_keep_what_it_removes_removes_nothing(sandbox, session, keys, quick):
    append(session, 2)
    operations.deliver(session.pk)
    pop = operations.pop_item(session.pk)
    quick["CIPHER_KEYS"] = []
    operations.deliver(session.pk)
    assert hold_of(pop) == HELD
    assert remote_texts(sandbox, session) == ["m0", "m1"]
    assert go_on(pop, keys).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == ["m0"]
    assert now(pop).popped["content"][0]["text"] == "m1"


def test_nothing_is_recorded_that_could_not_be_read_again(session, keys, quick):
    quick["CIPHER_KEYS"] = []
    with pytest.raises(ContentUnreadable):
        append(session, 1)
    with pytest.raises(ContentUnreadable):
        asyncio.run(operations.write_through(lambda: append(session, 1), patience=5.0))
    assert not WriteIntent.objects.exists()
    assert ConversationSession.objects.get().last_sequence == 0


def test_waiting_for_a_held_write_ends_at_once(sandbox, session, keys):
    write = append(session, 1)
    keys.lose()
    operations.deliver(session.pk)
    with pytest.raises(WriteNotSettled):
        operations.wait_for_write(write.pk, timeout=30)


def test_purging_does_without_the_key(sandbox, session, keys, monkeypatch):
    monkeypatch.setattr("convsessions.operations.purging.STILL_NEEDED", dt.timedelta(0))
    write = append(session, 2)
    operations.deliver(session.pk)
    keys.lose()
    assert operations.purge_payloads(0).writes == 1
    assert now(write).chunks.get().payload == ""


def test_no_log_line_holds_content_or_a_key(sandbox, session, keys, caplog):
    append(session, 1, prefix="zebra")
    keys.lose()
    operations.deliver(session.pk)
    write = session.writes.get()
    assert f"content_unreadable session={session.pk} write={write.pk}" in caplog.text
    assert "zebra" not in caplog.text
    assert keys.kept[0] not in caplog.text
