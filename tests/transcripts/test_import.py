"""`manage.py import_items`: what is recorded, what is said when it cannot be, and running it again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError

from convsessions import operations
from convsessions.management import transcripts
from convsessions.models import ConversationSession, WriteChunk, WriteIntent
from tests.agents.test_processes import database_url
from tests.histories import eventually, messages

from .commands import jsonl, run, run_json, stdin

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.django_db(transaction=True)


def recorded() -> list[str]:
    """The texts of what was recorded, in order."""
    chunks = WriteChunk.objects.order_by("write__sequence", "first_item")
    return [item["content"] for chunk in chunks for item in chunk.items]


def texts(count, start=0):
    return [f"m{start + at}" for at in range(count)]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_bytes(jsonl(messages(25)))
    return path


def test_a_file_is_recorded_in_batches_and_nothing_is_sent(sandbox, file):
    result = run_json("import_items", file, "--key", "k", "--batch", 10)

    session = ConversationSession.objects.get()
    assert result == {"session": str(session.pk), "items": 25, "omitted": 0, "writes": 3, "replayed": 0}
    assert recorded() == texts(25)
    assert [write.idempotency_key for write in WriteIntent.objects.order_by("sequence")] == [
        f"import/history.jsonl/{number}" for number in range(3)
    ]
    assert sandbox.requests() == []


def test_run_again_it_adds_nothing(file):
    run("import_items", file, "--key", "k", "--batch", 10)

    result = run_json("import_items", file, "--key", "k", "--batch", 10)

    assert (result["writes"], result["replayed"]) == (3, 3)
    assert recorded() == texts(25)


def test_it_says_in_words_what_it_did(session, file):
    assert run("import_items", file, "--session", session.pk) == (
        f"25 items in 1 writes for session {session.pk}; 0 of the writes were there before, 0 items are not sent.\n"
    )


def test_under_another_name_it_is_another_import(session, file):
    run("import_items", file, "--session", session.pk)
    run("import_items", file, "--session", session.pk, "--name", "second")

    assert recorded() == texts(25) * 2


FORMS = {
    "lines": jsonl(messages(3)),
    "lines with blanks, carriage returns and no end": b"\r\n" + jsonl(messages(3)).replace(b"\n", b"\r\n\n")[:-3],
    "a byte order mark": b"\xef\xbb\xbf" + jsonl(messages(3)),
    "an array": json.dumps(messages(3)).encode(),
    "an array over lines": b"\n" + json.dumps(messages(3), indent=4).encode(),
    "an array with a byte order mark": b"\xef\xbb\xbf" + json.dumps(messages(3)).encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_from_stdin_in_any_form(session, monkeypatch, form):
    stdin(monkeypatch, FORMS[form])

    assert run_json("import_items", "-", "--session", session.pk)["items"] == 3
    assert recorded() == texts(3)


@pytest.mark.parametrize("content", [b"", b"\n \r\n", b"[]"])
def test_nothing_is_no_items(session, monkeypatch, content):
    stdin(monkeypatch, content)

    assert run_json("import_items", "-", "--session", session.pk)["writes"] == 0


def test_line_separators_of_unicode_end_no_line(session, monkeypatch):
    text = "a\u2028b\u2029c\u0085d\x0be"
    stdin(monkeypatch, json.dumps({"role": "user", "content": text}, ensure_ascii=False).encode())

    run("import_items", "-", "--session", session.pk)

    assert recorded() == [text]


GOOD = jsonl(messages(12))
BAD = {
    # name: (the 13th line, what is said of it)
    "no JSON": (b'{"role": "user", "content": "secret"', "Line 13 is not JSON: column 37"),
    "not UTF-8": (b'{"role": "user", "content": "secret\xff"}', "Line 13 is not UTF-8"),
    "too deep": (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "Line 13 is nested too deeply"),
    "a number too large": (b'{"n": ' + b"9" * 5000 + b"}", "Line 13 holds a number with too many digits"),
    "no object": (b'"secret"', "Line 13: must be an object"),
    "half a surrogate pair": (
        b'{"role": "user", "content": [{"type": "input_text", "text": "\\ud83d"}]}',
        "Line 13, content[0].text: holds half a surrogate pair",
    ),
    "not a number": (b'{"type": "x", "n": [NaN]}', r"Line 13, n[0]: must be a finite number"),
    "no such role": (b'{"role": "secret", "content": "x"}', "Line 13, role: must be one of"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_named_and_nothing_of_its_batch_is_recorded(session, monkeypatch, name):
    line, problem = BAD[name]
    stdin(monkeypatch, GOOD + line + b"\n" + jsonl(messages(1)))

    with pytest.raises(CommandError) as refused:
        run("import_items", "-", "--session", session.pk, "--batch", 10)

    assert str(refused.value).startswith(problem)
    assert str(refused.value).endswith(
        "Nothing of its batch was recorded; 10 items before it were, and are not added again next time."
    )
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert recorded() == texts(10)


def test_once_the_line_is_mended_the_rest_is_added(session, monkeypatch):
    stdin(monkeypatch, GOOD + b"[]\n")
    with pytest.raises(CommandError):
        run("import_items", "-", "--session", session.pk, "--batch", 10)

    stdin(monkeypatch, GOOD + jsonl(messages(1, start=12)))
    run("import_items", "-", "--session", session.pk, "--batch", 10)

    assert recorded() == texts(13)


def test_elements_of_an_array_are_named_too(session, monkeypatch):
    stdin(monkeypatch, b'[{"role": "user", "content": "x"},\n {"role": "user"}]')

    with pytest.raises(CommandError, match="Element 2, content: is missing"):
        run("import_items", "-", "--session", session.pk)


def test_an_array_that_is_none_is_named_by_line_and_column(session, monkeypatch):
    stdin(monkeypatch, b'\n[{"role": "user"},\n {"role": secret}]')

    with pytest.raises(CommandError, match="The array is not JSON: line 3, column 11"):
        run("import_items", "-", "--session", session.pk)


def test_a_file_that_was_changed_where_it_was_imported_already_is_not_mixed_in(session, file):
    run("import_items", file, "--session", session.pk, "--batch", 10)
    file.write_bytes(jsonl(messages(25, prefix="other")))

    with pytest.raises(CommandError, match="Line 1 to line 10 differ from what was imported under this name before"):
        run("import_items", file, "--session", session.pk, "--batch", 10)
    assert recorded() == texts(25)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nowhere.jsonl", "--key", "k"], "nowhere.jsonl cannot be read"),
        (["-", "--session", "00000000-0000-0000-0000-000000000000"], "There is no such session"),
        (["-", "--key", "k", "--owner", "nobody"], "There is no user nobody"),
        (["-", "--key", "k", "--batch", "0"], "--batch: give a whole number from 1 to 10000"),
        (["-", "--key", "k", "--name", "x" * 300], "--name: give 1 to"),
    ],
)
def test_wrong_arguments(monkeypatch, arguments, problem):
    stdin(monkeypatch, GOOD)

    with pytest.raises(CommandError) as refused:
        run("import_items", *arguments)
    assert problem in str(refused.value)
    assert not WriteIntent.objects.exists()


def test_the_session_of_a_key_belongs_to_its_owner(file):
    somebody = get_user_model().objects.create(username="somebody")

    run("import_items", file, "--key", "k", "--owner", "somebody")
    run("import_items", file, "--key", "k")

    assert {session.owner_id for session in ConversationSession.objects.all()} == {somebody.pk, None}


def test_items_that_are_not_sent_are_counted(session, monkeypatch):
    stdin(monkeypatch, jsonl([{"type": "reasoning", "summary": []}, *messages(1)]))

    result = run_json("import_items", "-", "--session", session.pk)

    assert (result["items"], result["omitted"]) == (2, 1)


def test_large_items_make_small_batches(session, monkeypatch):
    monkeypatch.setattr(transcripts, "BATCH_BYTES", 300)
    stdin(monkeypatch, jsonl([{"role": "user", "content": "x" * 100}] * 5))

    assert run_json("import_items", "-", "--session", session.pk)["writes"] == 3


def test_an_import_that_was_killed_is_run_again_and_adds_nothing_twice(session):
    env = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "CONVSESSIONS_DISPATCHER": "convsessions.enqueue.dispatch_nowhere",
    }
    command = [sys.executable, "manage.py", "import_items", "-", "--session", str(session.pk), "--batch", "10"]
    lines = jsonl(messages(95))
    half = b"\n".join(lines.split(b"\n")[:47])

    with subprocess.Popen(command, env=env, cwd=ROOT, stdin=subprocess.PIPE) as killed:
        killed.stdin.write(half)
        killed.stdin.flush()
        eventually(lambda: WriteIntent.objects.count() >= 3)
        killed.kill()
    assert 3 <= WriteIntent.objects.count() <= 4
    done = subprocess.run(command, env=env, cwd=ROOT, input=lines, capture_output=True, check=True, timeout=60)

    assert b"95 items in 10 writes" in done.stdout
    assert done.stderr == b"", "no bar where there is no terminal"
    assert recorded() == texts(95)


def test_an_item_that_the_api_refuses_can_be_skipped(sandbox, session, monkeypatch):
    stdin(monkeypatch, jsonl([*messages(2), {"type": "future_call"}, *messages(2, start=2)]))

    run("import_items", "-", "--session", session.pk, "--on-refusal", "skip")
    operations.deliver(session.pk)

    assert [item["content"][0]["text"] for item in operations.iter_items(session.pk)] == texts(4)
