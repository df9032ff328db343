"""`manage.py export_items`: what of a history comes out, and as what."""

from __future__ import annotations

import json

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError

from convsessions import operations
from convsessions.models import WriteChunk
from tests.histories import append, deliver_until_settled, messages
from tests.remote import wire

from .commands import jsonl, run, run_json

pytestmark = pytest.mark.django_db(transaction=True)

GIVEN = [
    {"id": "msg_1", "role": "user", "content": "é", "status": None},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "provider_data": {"n": 1.0}},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "\x00"}]},
]


@pytest.fixture
def saved(session, sandbox):
    deliver_until_settled(operations.append_items(session.pk, GIVEN))
    session.refresh_from_db()
    return session


def exported(session, *arguments):
    return [json.loads(line) for line in run("export_items", "--session", session.pk, *arguments).splitlines()]


def test_what_was_given_comes_out_as_it_was_given(saved):
    assert run("export_items", "--session", saved.pk).encode() == jsonl(GIVEN)


def test_content_without_its_key_is_an_error_that_says_where_the_export_ends(session, sandbox, quick):
    quick |= {"CIPHER": "convsessions.ciphers.fernet", "CIPHER_KEYS": [Fernet.generate_key().decode()]}
    deliver_until_settled(append(session, 2))
    quick["CIPHER_KEYS"] = [Fernet.generate_key().decode()]
    with pytest.raises(CommandError, match=r"cannot be decrypted.*ends after item 0"):
        exported(session)
    assert len(exported(session, "--remote")) == 2


def test_to_a_file(saved, tmp_path):
    out = tmp_path / "out.jsonl"

    assert run_json("export_items", "--session", saved.pk, "--out", out) == {"session": str(saved.pk), "items": 3}
    assert out.read_bytes() == jsonl(GIVEN)
    assert run("export_items", "--session", saved.pk, "--out", out) == f"3 items of session {saved.pk}.\n"


def test_with_remote_every_item_is_as_the_api_lists_it(saved, sandbox):
    assert run("export_items", "--session", saved.pk, "--remote").encode() == jsonl(
        sandbox.items(saved.conversation_id)
    )


def test_a_foreign_item_comes_out_in_its_place_as_the_api_lists_it(saved, sandbox):
    (foreign,) = sandbox.append_foreign(saved.conversation_id, messages(1, prefix="foreign"))
    deliver_until_settled(append(saved, 1))

    assert exported(saved) == [*GIVEN, foreign, *messages(1)]


def test_what_was_popped_or_cleared_is_not_there(saved):
    deliver_until_settled(operations.pop_item(saved.pk))
    assert exported(saved) == GIVEN[:-1]

    deliver_until_settled(operations.clear_session(saved.pk))
    assert exported(saved) == []


def test_an_item_that_was_purged_from_the_journal_comes_out_as_the_api_lists_it(saved, sandbox):
    WriteChunk.objects.update(payload="", original=None)

    assert exported(saved) == sandbox.items(saved.conversation_id)


def test_pending_writes_are_left_out_unless_asked_for(saved):
    append(saved, 30)

    assert exported(saved) == exported(saved, "--pending", "without") == GIVEN
    assert exported(saved, "--pending", "with") == [*GIVEN, *messages(30)]


def test_pending_items_come_out_as_they_were_given(session):
    operations.append_items(session.pk, GIVEN)

    assert exported(session, "--pending", "with") == GIVEN


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        (["+a", "-"], [*GIVEN]),
        (["+a", "-", "-", "+b"], [*GIVEN[:2], *messages(1, prefix="b")]),
        (["-", "-"], GIVEN[:1]),
        (["-", "-", "-", "-", "+a"], messages(1, prefix="a")),
        (["+a", "x"], []),
        (["+a", "x", "+b", "+c", "-"], messages(1, prefix="b")),
        (["x", "-", "+a"], messages(1, prefix="a")),
    ],
    ids=str,
)
def test_pending_pops_and_clears_are_taken_as_done(saved, steps, left):
    for step in steps:
        if step == "-":
            operations.pop_item(saved.pk)
        elif step == "x":
            operations.clear_session(saved.pk)
        else:
            append(saved, 1, prefix=step[1:])

    assert exported(saved, "--pending", "with") == left

    operations.deliver(saved.pk)
    assert exported(saved) == left


def test_a_history_of_several_pages_can_end_in_pending_pops(session, sandbox):
    deliver_until_settled(append(session, 205))
    for _ in range(101):
        operations.pop_item(session.pk)

    assert exported(session, "--pending", "with") == messages(104)


def test_a_session_that_was_never_written_to_has_no_items(session):
    assert exported(session) == []


def test_a_reading_that_breaks_off_says_where(session, sandbox, tmp_path):
    deliver_until_settled(append(session, 150))
    sandbox.fault("bad_key", operation="list_items", skip=1)
    out = tmp_path / "out.jsonl"

    with pytest.raises(CommandError, match="What was written ends after item 100"):
        run("export_items", "--session", session.pk, "--out", out)
    assert out.read_bytes() == jsonl(messages(100))


def test_items_that_are_none_do_not_end_the_export(monkeypatch):
    page = {"object": "list", "data": [None, {"no": "id"}, "\ud83d", 1.0], "last_id": None, "has_more": False}
    with wire.Server(wire.answers(200, json.dumps(page).encode())) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        session = operations.create_session(conversation_id="conv_1")

        assert run("export_items", "--session", session.pk).encode() == jsonl(page["data"])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--json"], "--json goes together with --out"),
        (["--remote", "--pending", "with"], "--remote: what is pending is not there"),
        (["--out", "/nowhere/out.jsonl"], "/nowhere/out.jsonl cannot be written"),
    ],
)
def test_wrong_arguments(session, arguments, problem):
    with pytest.raises(CommandError, match=problem):
        run("export_items", "--session", session.pk, *arguments)
