"""Content at rest: encrypted in every column that holds it, readable through the journal, with keys that change."""

from __future__ import annotations

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from django.test import override_settings

from convsessions import operations
from convsessions.checks.values import check_cipher
from convsessions.exceptions import ContentUnreadable
from convsessions.models import WriteChunk
from convsessions.states import WriteState
from tests.histories import deliver_until_settled, remote_texts

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "the patient's name"
COLUMNS = "SELECT payload, original FROM convsessions_writechunk", "SELECT popped FROM convsessions_writeintent"


@pytest.fixture
def keys(quick):
    quick["CIPHER"], quick["CIPHER_KEYS"] = "convsessions.ciphers.fernet", [Fernet.generate_key().decode()]
    return quick["CIPHER_KEYS"]


def stored():
    """Every stored text that holds content, as the database has it."""
    with connection.cursor() as cursor:
        for statement in COLUMNS:
            cursor.execute(statement)
            yield from (text for row in cursor.fetchall() for text in row if text)


def message(text=SECRET):
    return {"id": "msg_x", "type": "message", "role": "user", "content": text}


def test_nothing_of_the_content_is_stored_as_it_is(sandbox, session, keys):
    deliver_until_settled(operations.append_items(session.pk, [message()] * 25))
    popped = deliver_until_settled(operations.pop_item(session.pk))

    assert remote_texts(sandbox, session) == [SECRET] * 24
    assert popped.popped["content"][0]["text"] == SECRET
    assert len(list(stored())) == 2 * 2 + 1
    assert not [text for text in stored() if SECRET in text or not text.startswith("enc:")]
    assert "msg_x" in WriteChunk.objects.first().original


def test_a_new_key_reads_what_the_old_one_wrote(sandbox, session, keys):
    write = operations.append_items(session.pk, [message()])
    keys.insert(0, Fernet.generate_key().decode())
    assert deliver_until_settled(write).state == WriteState.SAVED
    del keys[1]
    with pytest.raises(ContentUnreadable):
        _ = WriteChunk.objects.get().payload


def test_plain_content_from_before_stays_readable(sandbox, session, quick):
    write = operations.append_items(session.pk, [message()])
    quick["CIPHER"], quick["CIPHER_KEYS"] = "convsessions.ciphers.fernet", [Fernet.generate_key().decode()]
    assert deliver_until_settled(write).state == WriteState.SAVED


def test_a_row_without_its_key_can_be_read_but_for_its_content(session, keys, quick):
    write = operations.append_items(session.pk, [message()])
    quick["CIPHER"] = None
    chunk = WriteChunk.objects.get()
    assert (chunk.item_count, chunk.state, chunk.write_id) == (1, "pending", write.pk)
    with pytest.raises(ContentUnreadable) as caught:
        _ = chunk.payload
    assert SECRET not in str(caught.value)
    chunk.save(update_fields=["attempts"])
    quick["CIPHER"] = "convsessions.ciphers.fernet"
    assert SECRET in chunk.payload


def test_emptied_content_is_stored_as_nothing(session, keys):
    operations.append_items(session.pk, [message()])
    WriteChunk.objects.update(payload="", original=None)
    assert list(stored()) == []
    assert WriteChunk.objects.get().payload == ""


@pytest.mark.parametrize("given", [[], ["x" * 44]], ids=["none", "wrong"])
def test_keys_that_make_no_cipher_are_an_error_of_the_set_up(quick, given):
    with override_settings(CONVSESSIONS={"CIPHER": "convsessions.ciphers.fernet", "CIPHER_KEYS": given}):
        assert [message.id for message in check_cipher(None)] == ["convsessions.E003"]


def test_good_keys_are_none(keys):
    assert check_cipher(None) == []
