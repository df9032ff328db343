"""The command `after_restore`, and whole backups: of any moment, and by the databases' own tools."""

from __future__ import annotations

import json
import random

import pytest
from django.core.management import call_command

from convsessions import operations
from convsessions.models import ConversationSession, WriteChunk, WriteIntent
from convsessions.states import WriteState
from tests.histories import append, deliver_until_settled, messages, remote_texts, texts
from tests.restoring import Backup, as_operators_do, deliver_all

pytestmark = pytest.mark.django_db(transaction=True)

NOBODY = {"sessions": 0, "appends": 0, "pops": 0, "ambiguous": 0, "without_conversation": 0}


def test_the_command_says_what_it_finds_and_changes_nothing_on_a_dry_run(sandbox, begun, capsys):
    writes = [append(begun, 25, prefix="a"), operations.pop_item(begun.pk)]
    append(operations.create_session(), 1)
    before = list(ConversationSession.objects.order_by("pk").values())

    call_command("after_restore", "--dry-run", "--json")

    told = {"sessions": 2, "appends": 1, "pops": 1, "ambiguous": 0, "without_conversation": 1}
    assert json.loads(capsys.readouterr().out) == {**told, "dry_run": True}
    assert list(ConversationSession.objects.order_by("pk").values()) == before
    assert set(WriteChunk.objects.values_list("state", flat=True)) >= {WriteState.PENDING}
    assert not WriteChunk.objects.filter(state=WriteState.SENDING).exists()

    call_command("after_restore")
    out = capsys.readouterr().out
    assert "Sessions with open writes: 2\nAppends that are looked for" in out
    assert "done: 1\n" in out
    assert "Sessions without a conversation in the backup: 1\n" in out
    assert deliver_until_settled(writes[1]).state == WriteState.AMBIGUOUS

    call_command("after_restore", "--json")
    assert json.loads(capsys.readouterr().out)["ambiguous"] == 1


def test_where_nothing_is_open_there_is_nothing_to_do(sandbox, begun, capsys):
    call_command("after_restore", "--json")

    assert json.loads(capsys.readouterr().out) == {**NOBODY, "dry_run": False}


@pytest.mark.parametrize("seed", range(4))
def test_any_moment_of_a_backup_and_of_a_disaster(sandbox, begun, quick, seed):
    """Appends of all lengths, lost replies; the backup and the disaster come after any number of steps."""
    chance = random.Random(seed)
    quick["CHUNK_ITEMS"] = 3
    sent: list[list[dict]] = [messages(1, prefix="first")]
    writes = []

    def record(count: int) -> None:
        for _number in range(count):
            sent.append(messages(chance.randint(1, 9), prefix=f"w{len(sent)}-"))
            writes.append(operations.append_items(begun.pk, sent[-1]))

    def steps(count: int) -> None:
        for _number in range(count):
            operations.deliver(begun.pk, budget=0)

    sandbox.fault("lost_after", operation="append_items", skip=chance.randint(0, 6))
    sandbox.fault("lost_before", operation="append_items", skip=chance.randint(0, 6))
    record(6)
    steps(chance.randint(0, 8))
    backup = Backup()
    steps(chance.randint(0, 12))

    backup.restore()
    operations.after_restore()
    record(2)

    assert deliver_all(*writes) == [WriteState.SAVED] * 8
    assert remote_texts(sandbox, begun) == [text for items in sent for text in texts(items)]


def test_a_backup_of_the_whole_database_with_its_own_tools(sandbox, begun, tmp_path):
    writes = [append(begun, 45, prefix="a"), append(begun, 1, prefix="b")]
    backup = as_operators_do(tmp_path)
    operations.deliver(begun.pk, budget=0)
    later = append(begun, 1, prefix="later")

    backup.restore()
    assert not WriteIntent.objects.filter(pk=later.pk).exists()
    operations.after_restore()

    assert deliver_all(*writes) == [WriteState.SAVED] * 2
    expected = texts([*messages(1, prefix="first"), *messages(45, prefix="a"), *messages(1, prefix="b")])
    assert remote_texts(sandbox, begun) == expected
