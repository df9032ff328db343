"""Two clusters on one PostgreSQL, on one Redis, and behind PgBouncer in transaction mode: everything exact."""

from __future__ import annotations

import os
import tempfile
import uuid
from pathlib import Path

import pytest
from django.db import connection

from convsessions import operations
from convsessions.models import WriteIntent
from convsessions.states import WriteState
from tests.histories import append, eventually, messages, remote_texts, texts
from tests.queue.cluster import Cluster, run_in_a_process, site_environment
from tests.queue.pgbouncer import BINARY, PgBouncer

ON_POSTGRESQL = connection.vendor == "postgresql"
READY = "convsessions.enqueue.dispatch_ready_with_django_q"
ONE_EACH = "convsessions.enqueue.dispatch_with_django_q"
BROKER = "convsessions.brokers.postgres.PostgresBroker"
# Not the database that the other tests of Redis empty, perhaps at this moment.
REDIS = os.environ.get("CI_REDIS_URL", "redis://127.0.0.1:6379/15").rsplit("/", 1)[0] + "/13"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.skipif(not ON_POSTGRESQL, reason="needs PostgreSQL"),
]

RECORD = """
import uuid
from convsessions import operations
from tests.histories import messages
for name in {ids!r}:
    operations.append_items(uuid.UUID(name), messages(65))
"""


SWEEP = "from convsessions import operations; operations.sweep()"


@pytest.fixture
def patient(quick):
    """No request of a busy machine is taken for lost."""
    quick["REQUEST_TIMEOUT"] = 10.0


def run_to_its_end(code, environment):
    process = run_in_a_process(code, environment)
    process.communicate(timeout=120)
    assert process.returncode == 0


def all_saved():
    states = set(WriteIntent.objects.values_list("state", flat=True))
    return states == {WriteState.SAVED}


def assert_exact(sandbox, sessions, environment):
    # The database of a test has no schedule of the sweep.
    eventually(lambda: all_saved() or run_to_its_end(SWEEP, environment), seconds=120)
    for session in sessions:
        assert remote_texts(sandbox, session) == texts(messages(65))
    appends = [row for row in sandbox.requests() if row["operation"] == "append_items"]
    assert len(appends) == 4 * len(sessions)


@pytest.mark.parametrize("dispatcher", [ONE_EACH, READY])
def test_two_clusters_on_one_postgresql(sandbox, quick, patient, tmp_path, dispatcher):
    quick["DISPATCHER"] = dispatcher
    environment = {
        **site_environment(sandbox.base_url, quick), "CONVSESSIONS_DISPATCHER": dispatcher, "Q_BROKER_CLASS": BROKER,
    }  # fmt: skip
    sessions = [operations.create_session() for _ in range(15)]
    with Cluster(environment, tmp_path / "one.log"), Cluster(environment, tmp_path / "two.log"):
        code = RECORD.format(ids=[str(session.pk) for session in sessions])
        run_to_its_end(code, environment)
        assert_exact(sandbox, sessions, environment)


def test_two_clusters_on_one_redis(sandbox, quick, patient, tmp_path):
    redis = pytest.importorskip("redis")
    try:
        with redis.Redis.from_url(REDIS, socket_connect_timeout=1) as client:
            client.flushdb()
    except redis.RedisError:
        if os.environ.get("CI"):
            raise
        pytest.skip("needs Redis")
    environment = {
        **site_environment(sandbox.base_url, quick), "CONVSESSIONS_DISPATCHER": ONE_EACH, "REDIS_URL": REDIS,
    }  # fmt: skip
    sessions = [operations.create_session() for _ in range(15)]
    with Cluster(environment, tmp_path / "one.log"), Cluster(environment, tmp_path / "two.log"):
        code = RECORD.format(ids=[str(session.pk) for session in sessions])
        run_to_its_end(code, environment)
        assert_exact(sandbox, sessions, environment)


@pytest.fixture
def bouncer():
    if BINARY is None and not os.environ.get("CI"):
        pytest.skip("needs PgBouncer")
    with tempfile.TemporaryDirectory(prefix="convsessions-pgbouncer-") as folder, PgBouncer(Path(folder)) as bouncer:
        eventually(bouncer.answers)
        yield bouncer


@pytest.mark.parametrize("dispatcher", [ONE_EACH, READY])
def test_two_clusters_behind_pgbouncer_in_transaction_mode(sandbox, quick, patient, tmp_path, bouncer, dispatcher):
    """More clients than connections; the broker notices that it cannot listen there, and polls."""
    environment = {
        **site_environment(sandbox.base_url, quick),
        "CONVSESSIONS_DISPATCHER": dispatcher,
        "DATABASE_URL": bouncer.url,
        "Q_BROKER_CLASS": BROKER,
    }
    sessions = [operations.create_session() for _ in range(15)]
    with Cluster(environment, tmp_path / "one.log"), Cluster(environment, tmp_path / "two.log"):
        eventually(lambda: "cannot_listen" in (tmp_path / "one.log").read_text())
        code = RECORD.format(ids=[str(session.pk) for session in sessions])
        run_to_its_end(code, environment)
        assert_exact(sandbox, sessions, environment)


def test_a_killed_cluster_behind_pgbouncer_leaves_its_work_to_the_other_machine(sandbox, quick, tmp_path, bouncer):
    environment = {
        **site_environment(sandbox.base_url, quick), "CONVSESSIONS_DISPATCHER": READY, "DATABASE_URL": bouncer.url,
    }  # fmt: skip
    sandbox.settings(latency=0.05)
    session = operations.create_session()
    write = append(session, 400)
    with Cluster(environment, tmp_path / "one.log") as first:
        operations.sweep()
        ring = f"from convsessions import enqueue; enqueue.dispatch_ready_with_django_q('{session.pk}')"
        run_to_its_end(ring, environment)
        eventually(lambda: len(sandbox.requests()) > 5)
        first.kill()
    with Cluster(environment, tmp_path / "two.log"):
        eventually(lambda: run_to_its_end(SWEEP, environment) or settled(write.pk))
    sandbox.settings(latency=0)
    assert remote_texts(sandbox, session) == texts(messages(400))


def settled(write_id: uuid.UUID):
    return operations.get_write(write_id).settled
