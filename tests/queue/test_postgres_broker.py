"""The broker that wakes by LISTEN and NOTIFY: real clusters on PostgreSQL, and what it falls back to."""

from __future__ import annotations

import os

import pytest
from django.db import connection, transaction
from django_q.brokers import get_broker
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.tasks import async_task

from convsessions import operations
from convsessions.brokers.postgres import Listener, PostgresBroker, channel_of
from convsessions.states import WriteState
from tests.histories import append, eventually, messages, remote_texts, texts

from .cluster import Cluster, site_environment

BROKER = "convsessions.brokers.postgres.PostgresBroker"
FAR_TOO_LONG = 600.0
"""A poll time that no test outlives: what runs was told of."""

on_postgresql = pytest.mark.skipif(connection.vendor != "postgresql", reason="needs PostgreSQL")
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def broker_class(monkeypatch):
    monkeypatch.setattr(Conf, "BROKER_CLASS", BROKER)


@pytest.fixture
def environment(sandbox, quick):
    quick["DISPATCHER"] = "convsessions.enqueue.dispatch_with_django_q"
    environment = site_environment(sandbox.base_url, quick)
    return {**environment, "Q_BROKER_CLASS": BROKER, "Q_POLL": str(FAR_TOO_LONG)}


@pytest.fixture
def listening():
    """The broker of a cluster, which listens, and has found the queue empty."""
    broker = PostgresBroker(Conf.CLUSTER_NAME)
    assert broker.dequeue() is None
    yield broker
    if broker._listener:
        broker._listener.close()


def settled(write):
    now = operations.get_write(write.pk)
    return now if now.settled else None


def next_tasks(broker, *, tries=5):
    """What the next few calls of `dequeue` bring, as a cluster makes them."""
    return next((tasks for tasks in (broker.dequeue() for _ in range(tries)) if tasks), None)


@on_postgresql
def test_a_cluster_that_would_not_poll_for_minutes_runs_a_task_at_once(sandbox, session, environment, tmp_path):
    with Cluster(environment, tmp_path / "qcluster.log") as cluster:
        for start in (0, 45):
            write = operations.append_items(session.pk, messages(45, start=start))
            eventually(lambda write=write: settled(write))
        cluster.terminate()  # which does not wait for the poll either

    assert remote_texts(sandbox, session) == texts(messages(90))


@on_postgresql
def test_two_clusters_share_the_work_and_double_nothing(sandbox, environment, tmp_path):
    sessions = [operations.create_session() for _ in range(20)]
    with Cluster(environment, tmp_path / "one.log"), Cluster(environment, tmp_path / "two.log"):
        writes = [append(session, 45) for session in sessions]
        for write in writes:
            eventually(lambda write=write: settled(write))
        eventually(lambda: not OrmQ.objects.exists())

    for session in sessions:
        assert remote_texts(sandbox, session) == texts(messages(45))


@on_postgresql
def test_the_task_of_a_killed_cluster_comes_back_after_its_retry(sandbox, session, environment, tmp_path):
    environment = {**environment, "Q_TIMEOUT": "2", "Q_RETRY": "4", "Q_POLL": "0.5"}
    sandbox.fault("hang_after", operation="append_items", seconds=0.9)
    write = append(session, 3)
    with Cluster(environment, tmp_path / "first.log") as first:
        eventually(lambda: [row for row in sandbox.requests() if row["operation"] == "append_items"])
        first.kill()
    assert OrmQ.objects.count() == 1  # its receipt was not given
    with Cluster(environment, tmp_path / "second.log"):
        assert eventually(lambda: settled(write)).state == WriteState.SAVED

    assert remote_texts(sandbox, session) == texts(messages(3))


@on_postgresql
def test_a_task_is_taken_once_and_locked_until_its_retry(listening):
    async_task("math.floor", 1.5)

    ((pk, payload),) = next_tasks(listening)
    other = PostgresBroker(Conf.CLUSTER_NAME)

    assert other._take() == []
    row = OrmQ.objects.get(pk=pk)
    assert (row.payload, row.lock > row.task["started"]) == (payload, True)
    OrmQ.objects.update(lock=row.task["started"])  # as when `retry` is over
    assert other._take() == [(pk, payload)]
    other.acknowledge(pk)
    assert not OrmQ.objects.exists()


@on_postgresql
def test_a_task_that_another_cluster_is_taking_is_not_waited_for(listening):
    first, second = async_task("math.floor", 1.5), async_task("math.floor", 2.5)
    with transaction.atomic():
        assert [OrmQ.objects.select_for_update().order_by("pk").first().task["id"]] == [first]
        in_another_process = f"""
from django_q.conf import Conf
from django_q.signing import SignedPackage
from convsessions.brokers.postgres import PostgresBroker
print([SignedPackage.loads(payload)["id"] for _, payload in PostgresBroker(Conf.CLUSTER_NAME)._take()] == [{second!r}])
"""
        assert said_by_a_process(in_another_process) == "True"


@on_postgresql
def test_a_task_wakes_once_its_transaction_commits_and_not_if_it_is_rolled_back(listening):
    with transaction.atomic():
        async_task("math.floor", 1.5)
        transaction.set_rollback(True)
    assert listening._listener.wait(0.2) is False
    assert not OrmQ.objects.exists()

    with transaction.atomic():
        async_task("math.floor", 1.5)
        assert listening._listener.wait(0.2) is False
    assert listening._listener.wait(30.0) is True


@on_postgresql
def test_queues_do_not_wake_each_other():
    with_long_names = ("a" * 100, "a" * 99 + "b")
    assert len({channel_of(name) for name in with_long_names}) == 2
    listener = Listener.open(Conf.ORM, channel_of(with_long_names[0]))
    try:
        async_task("math.floor", 1.5, broker=PostgresBroker(with_long_names[1]))
        assert listener.wait(0.2) is False
        async_task("math.floor", 1.5, broker=PostgresBroker(with_long_names[0]))
        assert listener.wait(30.0) is True
    finally:
        listener.close()


@on_postgresql
def test_a_broken_connection_loses_no_task_and_is_replaced(listening, monkeypatch):
    monkeypatch.setattr(Conf, "POLL", FAR_TOO_LONG)
    monkeypatch.setattr("convsessions.brokers.postgres.FALLBACK_POLL", 0.05)
    before = listening._listener
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [before._wrapper.connection.info.backend_pid])
    async_task("math.floor", 1.5)

    assert len(next_tasks(listening)) == 1
    eventually(lambda: listening.dequeue() or listening._listener not in (None, before))
    async_task("math.floor", 2.5)
    assert len(next_tasks(listening)) == 1


@on_postgresql
def test_a_cluster_whose_listener_was_killed_goes_on(sandbox, session, environment, tmp_path):
    with Cluster(environment, tmp_path / "qcluster.log") as cluster:
        eventually(listeners)
        for pid in listeners():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
        write = append(session, 45)
        assert eventually(lambda: settled(write)).state == WriteState.SAVED
        assert cluster.process.poll() is None


@on_postgresql
def test_a_clock_that_is_ahead_does_not_hide_a_task(listening, monkeypatch):
    monkeypatch.setattr(Conf, "POLL", FAR_TOO_LONG)
    ahead = """
import datetime as dt
from django.utils import timezone
from django_q.tasks import async_task
real = timezone.now
timezone.now = lambda: real() + dt.timedelta(seconds=5)
async_task("math.floor", 1.5)
"""
    said_by_a_process(ahead)
    assert len(next_tasks(listening)) == 1


def test_elsewhere_and_with_other_names_it_is_the_orm_broker(monkeypatch):
    monkeypatch.setattr(Conf, "POLL", 0.01)
    broker = get_broker()
    assert isinstance(broker, PostgresBroker)
    task_id = async_task("math.floor", 1.5)
    ((pk, _),) = next_tasks(broker)
    assert OrmQ.objects.get(pk=pk).task["id"] == task_id
    assert (broker.queue_size(), broker.lock_size()) == (0, 1)
    assert broker.dequeue() is None
    broker.acknowledge(pk)
    assert not OrmQ.objects.exists()
    if broker._listener:
        broker._listener.close()


def listeners():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %%'")
        return [pid for (pid,) in cursor.fetchall()]


def said_by_a_process(code):
    from .cluster import database_url, run_in_a_process

    environment = {**os.environ, "DATABASE_URL": database_url(), "OPENAI_API_KEY": "sk-test", "Q_BROKER_CLASS": BROKER}
    said, _ = run_in_a_process(code, environment).communicate(timeout=60)
    return said.strip()
