"""The doctor in situations that are real: stopped clusters, killed workers, rejected keys. Only their age is set."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import re
import signal
import subprocess
import sys

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.db.models import F
from django.utils import timezone
from django_q.models import OrmQ, Schedule

from convsessions import enqueue, operations
from convsessions.models import ConversationSession, Heartbeat, WriteIntent
from convsessions.states import WriteState
from tests.histories import append, append_requests, eventually, messages

from .cluster import MANAGE, Cluster, run_in_a_process, site_environment

pytestmark = pytest.mark.django_db(transaction=True)

AN_HOUR = dt.timedelta(hours=1)
DELIVER = "import uuid\nfrom convsessions import operations\noperations.deliver(uuid.UUID({session!r}))\n"


@pytest.fixture
def swept(sandbox, transactional_db):
    """A set-up in which all is well."""
    enqueue.ensure_sweep_schedule("default")
    operations.sweep()
    return sandbox


def examine(*options: str) -> tuple[int, dict[str, dict]]:
    """The exit status, and what is not well by its code."""
    out, status = io.StringIO(), 0
    try:
        call_command("convsessions_doctor", "--json", *options, stdout=out)
    except SystemExit as end:
        status = int(end.code)
    report = json.loads(out.getvalue())
    assert report["status"] == {0: "ok", 1: "warning", 2: "error"}[status]
    return status, {found["code"]: found for found in report["findings"] if found["level"] != "ok"}


def test_all_is_well(swept, session):
    append(session, 3)
    operations.deliver(session.pk)
    assert examine() == (0, {})
    assert [row["operation"] for row in swept.requests()][-1] == "retrieve_conversation"


def test_a_cluster_that_was_stopped(swept, session, quick, tmp_path):
    quick["DISPATCHER"] = "convsessions.enqueue.dispatch_with_django_q"
    environment = site_environment(swept.base_url, quick)
    with Cluster(environment, tmp_path / "first.log") as first:
        write = append(session, 3)
        eventually(lambda: operations.get_write(write.pk).settled)
        first.terminate()
    late = append(session, 3)
    OrmQ.objects.update(lock=F("lock") - AN_HOUR)
    Heartbeat.objects.update(beat_at=F("beat_at") - AN_HOUR)

    status, found = examine()
    assert (status, {code: each["level"] for code, each in found.items()}) == (2, {"sweep": "error", "queue": "error"})
    assert "60 minutes" in found["queue"]["text"]
    assert "qcluster" in found["sweep"]["advice"]

    with Cluster(environment, tmp_path / "second.log"):
        eventually(lambda: operations.get_write(late.pk).settled)
        eventually(lambda: not OrmQ.objects.exists())
    operations.sweep()
    assert examine() == (0, {})


@pytest.mark.slow
def test_a_cluster_that_hangs_because_its_idle_workers_were_killed(swept, session, quick, tmp_path):
    """As the kernel does when memory is short. One of them had the lock of the inner queue, and took it along.

    The workers that replace them wait for it for ever, while the main process, its scheduler and its pusher go on.
    """
    quick["DISPATCHER"] = "convsessions.enqueue.dispatch_with_django_q"
    environment = site_environment(swept.base_url, quick)
    with Cluster(environment, tmp_path / "first.log") as hanging:
        write = append(session, 3)
        eventually(lambda: operations.get_write(write.pk).settled and not OrmQ.objects.exists())
        idle = [int(pid) for pid in re.findall(r"ready for work at (\d+)", hanging.log.read_text())]
        assert len(idle) == 2
        for pid in idle:
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: hanging.log.read_text().count("ready for work at") == 4)

        stranded = [append(operations.create_session(), 1) for _ in range(4)]
        Schedule.objects.update(next_run=timezone.now())
        # Half a minute later the scheduler has added a task, and nothing has been done of the four before it.
        eventually(lambda: OrmQ.objects.count() == 5, seconds=60)
        assert hanging.process.poll() is None
        assert OrmQ.objects.filter(lock__gt=timezone.now()).count() == 2, "what the pusher took, for workers to take"
        assert not any(operations.get_write(write.pk).settled for write in stranded)

        OrmQ.objects.filter(lock__lte=timezone.now()).update(lock=F("lock") - AN_HOUR)
        Heartbeat.objects.update(beat_at=F("beat_at") - AN_HOUR)
        status, found = examine("--no-api")
        assert (status, {code: each["level"] for code, each in found.items()}) == (
            2,
            {"sweep": "error", "queue": "error"},
        )
        assert found["queue"]["text"].startswith("A task has been due for 60 minutes")
        assert "a worker that was killed while idle can block all others" in found["queue"]["advice"]

        hanging.process.send_signal(signal.SIGTERM)  # the advice: stop its main process, and end what is left of it
        hanging.kill()
    with Cluster(environment, tmp_path / "second.log"):
        operations.sweep()
        eventually(lambda: all(operations.get_write(write.pk).settled for write in stranded))
        eventually(lambda: not OrmQ.objects.filter(lock__lte=timezone.now()).exists())
    assert examine() == (0, {})


def test_a_busy_cluster_without_the_schedule_of_the_sweep(swept, session, quick, tmp_path):
    quick["DISPATCHER"] = "convsessions.enqueue.dispatch_with_django_q"
    Schedule.objects.all().delete()
    Heartbeat.objects.update(beat_at=F("beat_at") - AN_HOUR)
    with Cluster(site_environment(swept.base_url, quick), tmp_path / "cluster.log"):
        write = append(session, 3)
        eventually(lambda: operations.get_write(write.pk).settled)
        eventually(lambda: not OrmQ.objects.exists() and Heartbeat.objects.filter(pk="delivery").exists())
        status, found = examine()
    assert (status, sorted(found)) == (2, ["convsessions.W010", "sweep"])
    assert found["sweep"]["text"] == "The last sweep was 60 minutes ago, though workers deliver: it is missing alone."
    assert "manage.py migrate" in found["sweep"]["advice"]


def test_a_sweep_whose_doorbells_reach_no_worker(swept, session):
    """DISPATCHER rings nowhere, and somebody runs the sweep."""
    write = append(session, 3)
    WriteIntent.objects.filter(pk=write.pk).update(created_at=F("created_at") - AN_HOUR)
    operations.sweep()
    status, found = examine()
    assert (status, sorted(found)) == (2, ["deliveries"])
    assert "DISPATCHER" in found["deliveries"]["advice"]


def test_a_worker_that_died(swept, session, quick):
    quick["REQUEST_TIMEOUT"] = 20.0
    swept.fault("hang_before", operation="append_items", seconds=20)
    append(session, 3)
    worker = run_in_a_process(DELIVER.format(session=str(session.pk)), site_environment(swept.base_url, quick))
    eventually(lambda: append_requests(swept, session))
    worker.kill()
    worker.communicate()
    ConversationSession.objects.update(lease_expires_at=F("lease_expires_at") - AN_HOUR, wake_at=F("wake_at") - AN_HOUR)

    status, found = examine()
    assert (status, sorted(found)) == (2, ["overdue", "stuck_leases"])
    assert "manage.py deliver" in found["stuck_leases"]["advice"]


def test_a_key_that_the_api_rejects(swept, session, quick):
    quick["RETRY_BACKOFF"] = (600.0, 600.0)
    swept.fault("bad_key", times=2)
    append(session, 3)
    operations.deliver(session.pk)

    status, found = examine()
    assert (status, sorted(found)) == (2, ["api", "held_bad_key"])
    assert found["held_bad_key"]["text"].startswith("1 writes are held: the API key was rejected")
    assert "401" in found["api"]["text"]


def test_content_whose_key_is_missing(swept, session, quick):
    quick |= {"CIPHER": "convsessions.ciphers.fernet", "CIPHER_KEYS": [Fernet.generate_key().decode()]}
    quick["RETRY_BACKOFF"] = (600.0, 600.0)
    append(session, 3)
    quick["CIPHER_KEYS"] = [Fernet.generate_key().decode()]
    operations.deliver(session.pk)

    status, found = examine()
    assert (status, sorted(found)) == (1, ["held_content_unreadable"])
    assert found["held_content_unreadable"]["advice"].startswith("Put the key back into CIPHER_KEYS")


def test_a_write_that_is_ambiguous(swept, session):
    append(session, 1)
    operations.deliver(session.pk)
    session.refresh_from_db()
    swept.append_foreign(session.conversation_id, messages(1, prefix="twice"))
    swept.fault("lost_after", operation="append_items")
    write = append(session, 1, prefix="twice")
    operations.deliver(session.pk)
    assert operations.get_write(write.pk).state == WriteState.AMBIGUOUS

    status, found = examine()
    assert (status, sorted(found)) == (1, ["ambiguous"])


def test_an_api_that_cannot_be_reached_is_not_asked_when_it_should_not_be(swept, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    status, found = examine()
    assert (status, sorted(found)) == (2, ["api"])
    assert examine("--no-api") == (0, {})


def test_what_system_checks_find_is_among_the_findings(swept, quick):
    quick |= {"LEASE_GRACE": 0.1}
    status, found = examine()
    assert (status, sorted(found)) == (1, ["convsessions.W004"])


def test_a_database_without_tables_in_words(tmp_path):
    env = {**os.environ, "DATABASE_URL": f"sqlite:///{tmp_path / 'empty.sqlite3'}"}
    command = [sys.executable, str(MANAGE), "convsessions_doctor"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout.splitlines() == [
        "   ERROR  The journal cannot be read: OperationalError.",
        "          -> See that the database runs and that manage.py migrate was run.",
    ]
