"""The Redis broker: chosen by REDIS_URL alone; what it loses, the sweep finds."""

from __future__ import annotations

import os
import uuid

import pytest

from convsessions import enqueue, operations
from convsessions.states import WriteState
from tests.histories import append, eventually, messages, remote_texts, texts

from .cluster import Cluster, run_in_a_process, site_environment

redis = pytest.importorskip("redis")

URL = os.environ.get("CI_REDIS_URL", "redis://127.0.0.1:6379/15")


def unreachable() -> bool:
    try:
        with redis.Redis.from_url(URL, socket_connect_timeout=1) as client:
            return not client.ping()
    except redis.RedisError:
        return True


pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not os.environ.get("CI") and unreachable(), reason="needs Redis"),
]

APPEND = """
import uuid
from convsessions import enqueue, operations
from tests.histories import messages
operations.append_items(uuid.UUID({session!r}), messages(45))
"""


@pytest.fixture
def environment(sandbox, quick):
    with redis.Redis.from_url(URL) as client:
        client.flushdb()
    environment = site_environment(sandbox.base_url, quick)
    return {**environment, "REDIS_URL": URL, "CONVSESSIONS_DISPATCHER": "convsessions.enqueue.dispatch_with_django_q"}


def settled(write_id: uuid.UUID):
    now = operations.get_write(write_id)
    return now if now.settled else None


def test_a_doorbell_through_redis_delivers(sandbox, session, environment, tmp_path):
    with Cluster(environment, tmp_path / "qcluster.log"):
        process = run_in_a_process(APPEND.format(session=str(session.pk)), environment)
        process.communicate(timeout=60)
        write = eventually(session.writes.first)
        eventually(lambda: settled(write.pk))

    assert settled(write.pk).state == WriteState.SAVED
    assert remote_texts(sandbox, session) == texts(messages(45))


def test_the_schedule_finds_what_redis_lost(sandbox, session, environment, tmp_path):
    write = append(session, 3)  # and no doorbell, as when Redis forgot it
    enqueue.ensure_sweep_schedule("default")
    with Cluster(environment, tmp_path / "qcluster.log"):
        assert eventually(lambda: settled(write.pk), seconds=90).state == WriteState.SAVED
