"""Changing keys: content comes under the newest one while writes go on, and then the old key can go."""

from __future__ import annotations

import io
import json
import threading

import pytest
from cryptography.fernet import Fernet, InvalidToken
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from convsessions import operations
from convsessions.exceptions import ContentUnreadable, InvalidInput
from convsessions.journal.encrypting import HOLDERS, rewrite
from convsessions.journal.erasing import empty
from convsessions.journal.locking import lock_session
from convsessions.models import WriteChunk, WriteIntent
from convsessions.operations import encrypting
from convsessions.states import WriteState
from tests.histories import append, deliver_until_settled, eventually, remote_texts
from tests.keys import new_key
from tests.models.test_ciphers import COLUMNS

pytestmark = pytest.mark.django_db(transaction=True)

CHUNKS, POPPED = HOLDERS


@pytest.fixture
def keys(quick):
    """CIPHER_KEYS, with one key."""
    quick["CIPHER"], quick["CIPHER_KEYS"], quick["CHUNK_ITEMS"] = "convsessions.ciphers.fernet", [new_key()], 3
    return quick["CIPHER_KEYS"]


def stored() -> list[str]:
    """Every stored text that holds content, as the database has it."""
    with connection.cursor() as cursor:
        found = []
        for statement in COLUMNS:
            cursor.execute(f"{statement} ORDER BY id")
            found += [text for row in cursor.fetchall() for text in row if text]
        return found


def keys_of(texts: list[str], *known: str) -> list[int | None]:
    """For each stored text the position of the key that it is under; None: it is plain."""
    found = []
    for text in texts:
        fits = [number for number, key in enumerate(known) if text.startswith("enc:") and opens(key, text)]
        found.append(fits[0] if fits else None)
    return found


def opens(key: str, text: str) -> bool:
    try:
        return bool(Fernet(key).decrypt(text.removeprefix("enc:").encode()))
    except InvalidToken:
        return False


def encrypt(*arguments, **options):
    out = io.StringIO()
    call_command("encrypt_content", *arguments, stdout=out, **options)
    return out.getvalue()


def one_with_an_id(text: str) -> list[dict]:
    """An item that is not sent as it was given, so that both are kept."""
    return [{"id": "msg_x", "type": "message", "role": "user", "content": text}]


def test_after_it_the_old_key_can_be_dropped_and_everything_goes_on(sandbox, session, quick):
    quick["CHUNK_ITEMS"] = 3
    plain = deliver_until_settled(operations.append_items(session.pk, one_with_an_id("plain")))
    old, new = new_key(), new_key()
    quick["CIPHER"], quick["CIPHER_KEYS"] = "convsessions.ciphers.fernet", [old]
    deliver_until_settled(append(session, 4, prefix="old"))
    pop = deliver_until_settled(operations.pop_item(session.pk))
    pending = append(session, 7, prefix="late")
    quick["CIPHER_KEYS"] = [new, old]
    assert set(keys_of(stored(), new, old)) == {None, 1}

    assert operations.encrypt_content() == encrypting.Encrypted(rewritten=1 + 2 + 3 + 1, current=0, unreadable=0)

    quick["CIPHER_KEYS"] = [new]
    assert set(keys_of(stored(), new)) == {0}
    assert deliver_until_settled(pending).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == ["plain", "old0", "old1", "old2", *(f"late{n}" for n in range(7))]
    assert operations.get_write(pop.pk).popped["content"][0]["text"] == "old3"
    assert "msg_x" in plain.chunks.get().original
    assert not operations.verify_session(session.pk)


def test_a_second_run_has_nothing_to_write(session, keys):
    append(session, 7)
    before = stored()
    assert operations.encrypt_content() == encrypting.Encrypted(0, 3, 0)
    assert stored() == before


def test_one_that_was_broken_off_goes_on_where_it_was(session, keys, monkeypatch):
    monkeypatch.setattr(encrypting, "BATCH_ROWS", 2)
    append(session, 15)
    keys.insert(0, new_key())

    def broken_off(done, total):
        assert (done, total) == (2, 5)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        operations.encrypt_content(progress=broken_off)
    assert sorted(keys_of(stored(), *keys)) == [0, 0, 1, 1, 1]
    assert operations.encrypt_content() == encrypting.Encrypted(3, 2, 0)


def test_every_look_goes_on_behind_the_one_before(keys, monkeypatch):
    monkeypatch.setattr(encrypting, "LOOK", 2)
    for _ in range(3):
        append(operations.create_session(), 4)
    keys.insert(0, new_key())
    assert operations.encrypt_content() == encrypting.Encrypted(6, 0, 0)
    assert set(keys_of(stored(), *keys)) == {0}


def test_what_no_key_reads_stays_as_it_is_and_is_told(session, keys):
    append(session, 4)
    lost = keys[0]
    keys[:] = [new_key()]
    append(session, 1)
    before = stored()
    with pytest.raises(CommandError, match="2 cannot be read with the present keys"):
        encrypt()
    assert stored() == before
    keys.append(lost)
    assert operations.encrypt_content() == encrypting.Encrypted(2, 1, 0)


def test_content_that_was_removed_meanwhile_does_not_come_back(session, keys, monkeypatch):
    """The run listed it before; under the lock it is looked at again."""
    monkeypatch.setattr(encrypting, "BATCH_ROWS", 1)
    write = append(session, 6)
    keys.insert(0, new_key())

    def purged(done, total):
        if done == 1:
            with transaction.atomic():
                lock_session(session.pk, using="default")
                empty(WriteIntent.objects.filter(pk=write.pk), write.created_at, using="default")

    operations.encrypt_content(progress=purged)
    assert stored() == []


@pytest.mark.skipif(connection.vendor == "sqlite", reason="needs row locks")
def test_it_waits_for_whoever_has_the_session_locked(session, keys):
    """A worker that cuts a chunk holds the lock from reading its content to writing the two halves."""
    append(session, 3)
    keys.insert(0, new_key())
    (chunk,) = WriteChunk.objects.all()
    done = threading.Event()

    def run():
        try:
            rewrite(CHUNKS, session.pk, [chunk.pk], using="default")
            done.set()
        finally:
            connection.close()

    with transaction.atomic():
        lock_session(session.pk, using="default")
        thread = threading.Thread(target=run)
        thread.start()
        eventually(_somebody_waits_for_a_lock)
        assert not done.is_set()
        WriteChunk.objects.filter(pk=chunk.pk).update(payload='["the first half"]')
    thread.join()
    assert WriteChunk.objects.get().payload == '["the first half"]'
    assert keys_of(stored(), *keys) == [0]


def _somebody_waits_for_a_lock() -> bool:
    waiting = {
        "postgresql": "SELECT count(*) FROM pg_locks WHERE NOT granted",
        "mysql": "SELECT count(*) FROM information_schema.processlist "
        "WHERE db = database() AND id <> connection_id() AND info LIKE '%FOR UPDATE%'",
    }
    with connection.cursor() as cursor:
        cursor.execute(waiting[connection.vendor])
        return cursor.fetchone()[0] > 0


def test_writes_are_delivered_at_the_same_time(sandbox, session, quick, keys):
    """With a worker at every chunk, halving some, and keys that change all the while, no item is lost or altered."""
    quick["CHUNK_ITEMS"] = 20
    sandbox.fault("fussy", text="bad", times=None)
    sandbox.settings(latency=0.02)
    items = [{"type": "message", "role": "user", "content": "bad" if n % 40 == 7 else f"m{n}"} for n in range(200)]
    write = operations.append_items(session.pk, items, on_refusal="skip")

    def work():
        try:
            deliver_until_settled(write)
        finally:
            connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    runs = 0
    while worker.is_alive():
        quick["CIPHER_KEYS"] = [new_key(), *quick["CIPHER_KEYS"]]
        operations.encrypt_content()
        runs += 1
    worker.join()

    assert runs > 1
    assert operations.get_write(write.pk).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == [item["content"] for item in items if item["content"] != "bad"]
    assert not operations.verify_session(session.pk)


def test_a_cipher_that_cannot_tell_its_keys_apart_is_written_anew_each_time(session, quick):
    quick["CIPHER"] = "tests.journal.test_encrypting.reversing"
    append(session, 1)
    assert operations.encrypt_content() == encrypting.Encrypted(1, 0, 0)


class _Reversing:
    def encrypt(self, text: str) -> str:
        return text[::-1]

    decrypt = encrypt


def reversing() -> _Reversing:
    return _Reversing()


def test_the_command_says_what_it_would_do_and_does_it(session, keys):
    append(session, 7)
    keys.insert(0, new_key())
    before = stored()
    assert encrypt("--dry-run") == "3 chunks and popped items would be written under the newest key; 0 were before.\n"
    assert stored() == before
    result = json.loads(encrypt("--json"))
    assert result.pop("seconds") >= 0
    assert result == {"rewritten": 3, "current": 0, "unreadable": 0, "dry_run": False}
    assert encrypt() == "0 chunks and popped items were written under the newest key; 3 were before.\n"


def test_it_shows_a_bar_on_a_terminal(session, keys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    append(session, 1)
    shown = Terminal()
    encrypt(stderr=shown, no_color=True)
    assert "[##############################] 1/1 rows" in shown.getvalue()


def test_without_a_cipher_or_with_a_broken_one_nothing_is_done(session, quick):
    append(session, 1)
    with pytest.raises(InvalidInput):
        operations.encrypt_content()
    with pytest.raises(CommandError, match="set it in CONVSESSIONS"):
        encrypt()
    quick["CIPHER"], quick["CIPHER_KEYS"] = "convsessions.ciphers.fernet", []
    with pytest.raises(ContentUnreadable):
        operations.encrypt_content()


def test_an_empty_journal(keys, db):
    assert operations.encrypt_content() == encrypting.Encrypted(0, 0, 0)
