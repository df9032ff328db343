"""A broker for django-q2 whose clusters wake as soon as a task is committed, by PostgreSQL's LISTEN and NOTIFY.

    Q_CLUSTER = {"orm": "default", "broker_class": "convsessions.brokers.postgres.PostgresBroker", "poll": 5, …}

It is django-q2's ORM broker (its table, its receipts, its `retry`), and differs in two ways. Enqueueing also sends a
notification, in the same transaction: what is rolled back wakes nobody. An empty queue is waited for on the socket of
one more connection a cluster, for `poll` seconds at most: that remains the net under a lost notification, and is how
late a task whose worker died may be found beyond its `retry`.

On other databases, through a pooler that shares server connections (PgBouncer in transaction mode cannot LISTEN), and
while the connection is in trouble, the queue is polled as the ORM broker does it, every `poll` seconds or every second,
whichever is more often.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import os
import time
from typing import Any

from django.db import Error, connections, transaction
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf

logger = logging.getLogger(__name__)

FALLBACK_POLL = 1.0
"""Seconds between two looks at the queue where nothing tells of new tasks, if `poll` is not less."""
LISTEN_AGAIN = 30.0
"""Seconds before it is tried again to listen."""
SLICE = 0.5
"""Seconds that one `dequeue` waits at most: the cluster looks only between two of them whether it should stop."""
SKEW = dt.timedelta(seconds=10)
"""By how much the clock of a machine that enqueues may be ahead. A task counts as due once its `lock` is past by the
clock of the cluster; one of the near future would be passed over when its notification comes."""


class PostgresBroker(ORM):  # type: ignore[misc]  # django-q2 has no types
    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key=list_key)
        self._reset()

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._reset()

    def _reset(self) -> None:
        self._listener: Listener | None = None
        self._pid = os.getpid()
        self._look_at = self._listen_at = 0.0

    def enqueue(self, task: str) -> int:
        """Add a task and wake the clusters, in the caller's transaction if there is one; returns its id."""
        key = self.list_key or Conf.CLUSTER_NAME
        tasks, connection = self.get_connection(), connections[Conf.ORM]
        with transaction.atomic(using=Conf.ORM, savepoint=False):
            pk: int = tasks.create(key=key, payload=task, lock=timezone.now() - SKEW).pk
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_notify(%s, '')", [channel_of(key)])
        return pk

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Up to `bulk` tasks, each locked for `retry` seconds; None after having waited for a moment in vain."""
        if connections[Conf.ORM].vendor != "postgresql":
            found: list[tuple[int, str]] | None = super().dequeue()
            return found
        listener = self._listening()
        if time.monotonic() >= self._look_at:
            if tasks := self._take():
                return tasks
            self._look_at = time.monotonic() + (Conf.POLL if listener else min(Conf.POLL, FALLBACK_POLL))
        self._wait(listener, min(max(self._look_at - time.monotonic(), 0.0), SLICE))
        return None

    def _take(self) -> list[tuple[int, str]]:
        # Every waiting cluster of the database wakes at once: those that come second find the next task, and do not
        # wait for the first one's.
        due = self.get_connection().filter(key=self.list_key, lock__lt=timezone.now()).order_by("pk")
        with transaction.atomic(using=Conf.ORM):
            tasks = list(due.select_for_update(skip_locked=True)[: Conf.BULK])
            if tasks:
                pks = [task.pk for task in tasks]
                self.get_connection().filter(pk__in=pks).update(lock=self.timeout(None))
        return [(task.pk, task.payload) for task in tasks]

    def _wait(self, listener: Listener | None, seconds: float) -> None:
        if listener is None:
            time.sleep(seconds)
            return
        try:
            woken = listener.wait(seconds)
        except Error as error:
            logger.warning("listening_failed error=%s", type(error).__name__)
            self._drop()
            woken = True  # what was told meanwhile was not heard
        if woken:
            self._look_at = 0.0

    def _listening(self) -> Listener | None:
        """The listener of this process, None while there cannot be one. Its first look comes after it listens."""
        if self._pid != os.getpid():
            self._reset()  # the cluster makes its broker before it forks
        if self._listener is None and time.monotonic() >= self._listen_at:
            self._listen_at = time.monotonic() + LISTEN_AGAIN
            try:
                self._listener = Listener.open(Conf.ORM, channel_of(self.list_key))
            except Error as error:
                logger.warning("listening_failed error=%s", type(error).__name__)
            self._look_at = 0.0
        return self._listener

    def _drop(self) -> None:
        if self._listener is not None:
            self._listener.close()
        self._listener = None
        self._listen_at = time.monotonic() + min(Conf.POLL, FALLBACK_POLL)


class Listener:
    """A connection of its own that listens on one channel. Its errors are those of `django.db`."""

    def __init__(self, wrapper: Any) -> None:
        self._wrapper = wrapper

    @classmethod
    def open(cls, using: str, channel: str) -> Listener | None:
        """Listen on `channel`; None where that cannot work: psycopg 2, or a pooler between us and the server."""
        wrapper = connections[using].copy()
        wrapper.settings_dict = {**wrapper.settings_dict, "OPTIONS": _without_pool(wrapper.settings_dict["OPTIONS"])}
        try:
            wrapper.connect()
            with wrapper.cursor() as cursor:
                if not _is_direct(wrapper.connection, cursor):
                    logger.warning("cannot_listen database=%s", using)
                    wrapper.close()
                    return None
                cursor.execute(f"LISTEN {wrapper.ops.quote_name(channel)}")
        except BaseException:
            wrapper.close()
            raise
        return cls(wrapper)

    def wait(self, seconds: float) -> bool:
        """Whether a notification came, within `seconds`."""
        with self._wrapper.wrap_database_errors:
            return any(True for _ in self._wrapper.connection.notifies(timeout=seconds, stop_after=1))

    def close(self) -> None:
        self._wrapper.close()


def channel_of(key: str) -> str:
    """The channel of a queue: names of channels are 63 bytes at most, those of queues are longer."""
    return f"django_q_{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def _is_direct(connection: Any, cursor: Any) -> bool:
    """Whether the server itself is at the other end. A pooler tells its clients process ids of its own making."""
    if not callable(getattr(connection, "notifies", None)):
        return False  # psycopg 2
    cursor.execute("SELECT pg_backend_pid()")
    told: bool = cursor.fetchone()[0] == connection.info.backend_pid
    return told


def _without_pool(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "pool"}
