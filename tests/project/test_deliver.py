"""`manage.py deliver`: delivery without a queue."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from convsessions import operations
from convsessions.states import WriteState

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
ITEMS = [{"type": "message", "role": "user", "content": f"message {number}"} for number in range(45)]

pytestmark = pytest.mark.django_db(transaction=True)


def deliver(*arguments: str) -> str:
    out = StringIO()
    call_command("deliver", *arguments, stdout=out)
    return out.getvalue()


def test_delivers_every_session_that_has_work(sandbox):
    writes = [operations.append_items(operations.create_session().pk, ITEMS) for _ in range(3)]

    said = deliver()

    assert said == "3 sessions: 3 done. 0 writes need attention.\n"
    assert {operations.get_write(write.pk).state for write in writes} == {WriteState.SAVED}


def test_says_so_when_nothing_is_due(sandbox):
    operations.create_session()

    assert deliver() == "0 sessions. 0 writes need attention.\n"
    assert sandbox.requests() == []


def test_delivers_one_session_and_leaves_the_others(sandbox):
    first, second = (operations.append_items(operations.create_session().pk, ITEMS) for _ in range(2))

    deliver("--session", str(second.session_id))

    assert operations.get_write(first.pk).state == WriteState.PENDING
    assert operations.get_write(second.pk).state == WriteState.SAVED


def test_a_session_that_does_not_exist(sandbox):
    missing = uuid.uuid4()

    with pytest.raises(CommandError, match=f"There is no session {missing}"):
        deliver("--session", str(missing))


def test_goes_on_with_a_session_whose_time_budget_ended(sandbox, quick):
    """With a budget that is over after each request, one write takes several deliveries."""
    quick["DELIVERY_BUDGET"] = 0.05
    sandbox.settings(latency=0.06)
    write = operations.append_items(operations.create_session().pk, ITEMS)

    result = json.loads(deliver("--json").splitlines()[-1])

    assert operations.get_write(write.pk).state == WriteState.SAVED
    assert result.pop("seconds") > 0
    assert result == {
        "sessions": 1,
        "nothing_to_do": 0,
        "done": 1,
        "lease_lost": 0,
        "failed": 0,
        "needing_attention": 0,
    }


def test_leaves_a_held_write_for_its_time(sandbox, quick):
    """A write that waits longer than the budget is not waited for."""
    quick.update(DELIVERY_BUDGET=0.05, RETRY_BACKOFF=(30.0, 60.0))
    sandbox.fault("rate_limited", operation="append_items", retry_after="30")
    write = operations.append_items(operations.create_session().pk, ITEMS)

    deliver()

    assert operations.get_write(write.pk).state == WriteState.SENDING
    assert deliver() == "0 sessions. 0 writes need attention.\n"


def test_one_session_that_fails_does_not_keep_the_others_waiting(sandbox, caplog):
    broken, sound = (operations.append_items(operations.create_session().pk, ITEMS) for _ in range(2))
    broken.chunks.update(payload="not JSON")

    with pytest.raises(CommandError, match="could not be delivered"):
        deliver()

    assert operations.get_write(sound.pk).state == WriteState.SAVED
    said = f"delivery_failed session={broken.session_id} error=JSONDecodeError"
    assert said in [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon"])
def test_refuses_a_watch_without_a_time(seconds):
    with pytest.raises(CommandError, match="--watch"):
        deliver("--watch", seconds)


@pytest.fixture
def own_site(sandbox_process, tmp_path):
    """The environment of processes with a database of their own."""
    env = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{tmp_path / 'watch.sqlite3'}",
        "OPENAI_API_KEY": "sandbox",
        "OPENAI_BASE_URL": sandbox_process.base_url,
    }
    sandbox_process.reset()
    subprocess.run([sys.executable, MANAGE, "migrate", "--verbosity", "0"], env=env, check=True)
    return env


def record_in(env: dict[str, str]) -> None:
    record = (
        "from convsessions import operations as o; s = o.create_session();"
        "o.append_items(s.pk, [{'role': 'user', 'content': 'hi'}])"
    )
    subprocess.run([sys.executable, MANAGE, "shell", "-v", "0", "-c", record], env=env, check=True)


def test_watches_until_it_is_asked_to_end(sandbox_process, own_site):
    """A process of its own delivers what was recorded before it started, and ends cleanly on SIGTERM."""
    record_in(own_site)

    command = [sys.executable, MANAGE, "deliver", "--watch", "0.05", "--json"]
    with subprocess.Popen(command, env=own_site, stdout=subprocess.PIPE, text=True) as watching:
        rounds = [json.loads(watching.stdout.readline()) for _ in range(2)]
        watching.send_signal(signal.SIGTERM)
        watching.stdout.read()

    assert [(result["sessions"], result["done"]) for result in rounds] == [(1, 1), (0, 0)]
    assert watching.returncode == 0
    assert [row["operation"] for row in sandbox_process.requests()] == ["create_conversation", "append_items"]


def test_a_watch_says_once_that_nothing_happens(own_site):
    command = [sys.executable, MANAGE, "deliver", "--watch", "0.01"]
    with subprocess.Popen(command, env=own_site, stdout=subprocess.PIPE, text=True) as watching:
        said = [watching.stdout.readline()]
        record_in(own_site)  # takes many rounds
        said.append(watching.stdout.readline())
        watching.send_signal(signal.SIGTERM)
        watching.stdout.read()

    assert said == ["0 sessions. 0 writes need attention.\n", "1 sessions: 1 done. 0 writes need attention.\n"]
