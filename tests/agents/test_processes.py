"""Several processes and one session: the history is that of some serial order of their calls.

Longer by hand: ``RACE_SECONDS=60 pytest tests/agents/test_processes.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from convsessions.models import ConversationSession, WriteIntent
from tests.histories import remote_texts

ROOT = Path(__file__).resolve().parents[2]
SECONDS = float(os.environ.get("RACE_SECONDS", "8"))

pytestmark = pytest.mark.slow


def database_url():
    """What makes another process use this test's database."""
    if connection.vendor == "sqlite":
        return f"sqlite:///{connection.settings_dict['NAME']}"
    base, _, _ = os.environ["DATABASE_URL"].partition("?")
    return f"{base.rsplit('/', 1)[0]}/{connection.settings_dict['NAME']}"


def racers(sandbox, *names):
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "project.settings",
        "DATABASE_URL": database_url(),
        "CONVSESSIONS_DISPATCHER": "convsessions.enqueue.dispatch_nowhere",
    }
    command = [sys.executable, "-m", "tests.agents.racing", "k"]
    return [
        subprocess.Popen([*command, name, str(SECONDS)], env=env, cwd=ROOT, text=True, stdout=subprocess.PIPE)
        for name in names
    ]


def replayed(writes, calls):
    """The history after doing `writes` one after the other; each must fit what its caller was told."""
    history = []
    by_items = {call["items"][0]: call for call in calls if call["kind"] == "add"}
    by_popped = {call["items"]: call for call in calls if call["kind"] == "pop" and call["items"]}
    order = []
    for write in writes:
        if write.kind == "append":
            added = [item["content"] for chunk in write.chunks.all() for item in chunk.items]
            history += added
            order.append(by_items.pop(added[0]))
            assert order[-1]["items"] == added
        elif history:
            order.append(by_popped.pop(history.pop()))
        else:
            assert write.popped is None
    assert not by_items
    assert not by_popped
    return history, order


def test_the_history_is_that_of_a_serial_order(transactional_db, sandbox):
    processes = racers(sandbox, "a", "b")
    told = [
        json.loads(line) for process in processes for line in process.communicate(timeout=SECONDS + 60)[0].splitlines()
    ]
    assert [process.returncode for process in processes] == [0, 0]

    writes = list(WriteIntent.objects.order_by("sequence"))
    history, order = replayed(writes, told)

    assert ConversationSession.objects.count() == 1
    assert len(writes) == len(told) > 10
    assert remote_texts(sandbox, ConversationSession.objects.get()) == history
    # A call that ended before another began comes before it.
    assert all(earlier["began"] <= later["ended"] for at, earlier in enumerate(order) for later in order[at + 1 :])
    print(f"{len(told)} calls, {sum(call['kind'] == 'pop' for call in told)} pops, {len(history)} items left")
