"""The main job with real django-q2 clusters: pick-up, concurrency, kills, and a queue that loses everything."""

from __future__ import annotations

import itertools
import json
import shutil
import signal

import pytest
from django.core.management import call_command
from django_q.models import OrmQ, Schedule

from convsessions import enqueue, operations
from convsessions.states import WriteState
from tests.histories import append, append_requests, eventually, messages, remote_texts, texts

from .cluster import Cluster, can_contain, run_in_a_process, site_environment

pytestmark = pytest.mark.django_db(transaction=True)
CONTAINED = pytest.mark.skipif(not can_contain(), reason="there are no namespaces of processes")
WITH_TINI = pytest.mark.skipif(not shutil.which("tini"), reason="there is no tini")

APPEND_WHEN_TOLD = """
import sys, uuid
from convsessions import operations
from tests.histories import messages
print("ready", flush=True)
sys.stdin.readline()
operations.append_items(uuid.UUID({session!r}), messages(45, prefix={prefix!r}))
"""


@pytest.fixture
def environment(sandbox, quick):
    quick["DELIVERY_BUDGET"] = 10.0
    return site_environment(sandbox.base_url, quick)


@pytest.fixture
def with_queue(quick):
    """Doorbells ring as on a real site."""
    quick["DISPATCHER"] = "convsessions.enqueue.dispatch_with_django_q"


@pytest.fixture
def cluster(environment, tmp_path):
    with Cluster(environment, tmp_path / "qcluster.log") as cluster:
        yield cluster


def settled(write):
    now = operations.get_write(write.pk)
    return now if now.settled else None


def overlapping(rows):
    """Pairs of requests of which the second began before the first was answered."""
    spans = sorted((row["started_at"], row["finished_at"]) for row in rows)
    return [(one, two) for one, two in itertools.pairwise(spans) if two[0] < one[1]]


def test_two_processes_that_append_at_once_get_two_unbroken_blocks(sandbox, session, environment, with_queue, cluster):
    environment = {**environment, "CONVSESSIONS_DISPATCHER": "convsessions.enqueue.dispatch_with_django_q"}
    processes = []
    for prefix in ("a", "b"):
        code = APPEND_WHEN_TOLD.format(session=str(session.pk), prefix=prefix)
        processes.append(run_in_a_process(code, environment))
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        assert process.wait(timeout=30) == 0
        process.stdout.close()
        process.stdin.close()

    writes = list(session.writes.all())
    assert [write.items_total for write in writes] == [45, 45]
    for write in writes:
        assert eventually(lambda write=write: settled(write)).state == WriteState.SAVED

    stored = remote_texts(sandbox, session)
    blocks = [texts(messages(45, prefix=prefix)) for prefix in "ab"]
    assert stored in (blocks[0] + blocks[1], blocks[1] + blocks[0])
    log = sandbox.requests()
    assert [row["operation"] for row in log] == ["create_conversation", *["append_items"] * 6]
    assert overlapping(log) == []


def test_a_killed_cluster_leaves_its_work_to_the_next_one(sandbox, session, environment, with_queue, tmp_path):
    write = append(session, 45)
    sandbox.fault("hang_after", operation="append_items", skip=1, seconds=0.9)
    with Cluster(environment, tmp_path / "first.log") as first:
        eventually(lambda: [row for row in append_requests(sandbox, session)[1:] if row["finished_at"] is None])
        first.kill()
    with Cluster(environment, tmp_path / "second.log"):
        eventually(lambda: (operations.sweep() and False) or settled(write))

    assert settled(write).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == texts(messages(45))


@pytest.mark.parametrize(
    "place",
    [
        {},
        pytest.param({"container": True}, marks=CONTAINED),
        pytest.param({"container": True, "init": ["tini", "--"]}, marks=[CONTAINED, WITH_TINI]),
    ],
    ids=["service", "process_1", "under_an_init"],
)
def test_a_terminated_cluster_finishes_its_request_and_the_next_one_goes_on(
    sandbox, session, environment, with_queue, tmp_path, quick, place
):
    environment = {**environment, "CONVSESSIONS_DELIVERY_BUDGET": "0.5"}
    sandbox.settings(latency=0.05)
    write = append(session, 1000)
    with Cluster(environment, tmp_path / "first.log", **place) as first:
        eventually(lambda: len(append_requests(sandbox, session)) > 3)
        first.terminate()
        assert first.process.returncode == 0
    sent_by_the_first = len(append_requests(sandbox, session))
    assert all(row["finished_at"] for row in append_requests(sandbox, session))
    with Cluster(environment, tmp_path / "second.log"):
        eventually(lambda: (operations.sweep() and False) or settled(write), seconds=60)
    sandbox.settings(latency=0)

    assert 3 < sent_by_the_first < 50
    assert len(append_requests(sandbox, session)) == 50
    assert remote_texts(sandbox, session) == texts(messages(1000))


def test_a_queue_that_loses_every_message_strands_nothing(sandbox, session, with_queue, cluster):
    cluster.process.send_signal(signal.SIGSTOP)  # nobody takes the doorbell before it is lost
    try:
        write = append(session, 45)
        assert OrmQ.objects.all().delete()[0] == 1
    finally:
        cluster.process.send_signal(signal.SIGCONT)
    assert settled(write) is None

    assert operations.sweep() == 1

    assert eventually(lambda: settled(write)).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == texts(messages(45))


def test_the_schedule_alone_runs_the_sweep(sandbox, session, cluster):
    write = append(session, 3)  # recorded without a doorbell
    enqueue.ensure_sweep_schedule("default")  # the test database was emptied of what migrate had made
    assert eventually(lambda: settled(write), seconds=60).state == WriteState.SAVED


def test_the_same_doorbell_twice_at_once_delivers_once(sandbox, session, with_queue, cluster):
    write = append(session, 200)
    for _ in range(5):
        enqueue.dispatch_with_django_q(str(session.pk))
    eventually(lambda: settled(write))

    assert remote_texts(sandbox, session) == texts(messages(200))
    assert overlapping(sandbox.requests()) == []


def test_one_worker_serves_many_sessions_at_the_same_time(sandbox, environment, with_queue, quick, tmp_path):
    ready = "convsessions.enqueue.dispatch_ready_with_django_q"
    quick["DISPATCHER"] = ready
    sandbox.settings(latency=0.05)
    environment = {**environment, "Q_WORKERS": "1", "CONVSESSIONS_DISPATCHER": ready}
    sessions = [operations.create_session() for _ in range(12)]
    writes = [append(session, 65) for session in sessions]
    with Cluster(environment, tmp_path / "qcluster.log"):
        for write in writes:
            eventually(lambda write=write: settled(write))
        eventually(lambda: not OrmQ.objects.exists())
    sandbox.settings(latency=0)

    for session in sessions:
        assert remote_texts(sandbox, session) == texts(messages(65))
    log = sorted((row["started_at"], row["finished_at"]) for row in sandbox.requests())
    assert any(two[0] < one[1] for one, two in itertools.pairwise(log))  # with one worker


def test_migrate_makes_the_schedule_once():
    for _ in range(2):
        call_command("migrate", verbosity=0)
    schedule = Schedule.objects.get(func="convsessions.tasks.sweep")
    assert (schedule.schedule_type, schedule.minutes, schedule.repeats) == (Schedule.MINUTES, 1, -1)


def test_a_doorbell_carries_an_id_and_nothing_else(session, with_queue):
    append(session, 3, prefix="secret")
    package = OrmQ.objects.get().task
    assert (package["func"], package["args"]) == ("convsessions.tasks.deliver_session", (str(session.pk),))
    assert "secret" not in json.dumps(package, default=str)


def test_a_queue_that_is_down_does_not_lose_the_write(sandbox, session, quick, caplog):
    quick["DISPATCHER"] = "tests.queue.test_qcluster.broken_dispatcher"
    write = append(session, 3)

    assert operations.get_write(write.pk).state == WriteState.PENDING
    [said] = caplog.records
    assert said.message.startswith(f"doorbell_failed session={session.pk} error=")
    assert said.exc_info is None  # its text may hold the address of a broker with the password


def broken_dispatcher(session_id: str) -> None:
    raise ConnectionError("no queue")
