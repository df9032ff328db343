"""The producer side of the queue: doorbells after commit, and the schedule of the sweep.

A doorbell says "look at this session" and carries its id, nothing else. It may be lost, doubled or late: the sweep
finds every session with work that nobody is doing.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import uuid
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import router, transaction
from django.utils import timezone

from .conf import conf

logger = logging.getLogger(__name__)

DELIVER_TASK = "convsessions.tasks.deliver_session"
READY_TASK = "convsessions.tasks.deliver_ready"
READY_DISPATCHER = "convsessions.enqueue.dispatch_ready_with_django_q"
SWEEP_TASK = "convsessions.tasks.sweep"
SWEEP_NAME = "convsessions sweep"

_off: ContextVar[bool] = ContextVar("convsessions.doorbells_off", default=False)


def wake(session_id: uuid.UUID, *, using: str) -> None:
    """Ring the doorbell of a session after the commit of the present transaction on `using` (at once without one).

    So the queue may be in any database. One that is in a transaction of the host then takes the task with its commit.
    """
    transaction.on_commit(functools.partial(_dispatch, str(session_id)), using=using)


@contextlib.contextmanager
def doorbells_off() -> Iterator[None]:
    """For those who deliver at once themselves: what they commit within rings no doorbell. The sweep is the net."""
    token = _off.set(True)
    try:
        yield
    finally:
        _off.reset(token)


def _dispatch(session_id: str) -> None:
    if _off.get():
        return
    try:
        conf.import_string("DISPATCHER")(session_id)
    except Exception as error:  # noqa: BLE001 - whatever a dispatcher raises
        # The write is committed. A queue that is down must not make its recording look failed; the sweep delivers.
        # Without its text, which may hold the broker's address with the password.
        logger.error("doorbell_failed session=%s error=%s", session_id, type(error).__name__)  # noqa: TRY400


def dispatch_with_django_q(session_id: str) -> None:
    """The default DISPATCHER: a django-q2 task, without a result row, never repeated by the queue after an error."""
    _enqueue(DELIVER_TASK, session_id)


def dispatch_ready_with_django_q(session_id: str) -> None:
    """A DISPATCHER whose tasks serve many sessions at a time: the one that rang, and others that are due.

    It uses ASYNC_CLIENT_FACTORY. A doorbell that was answered by an earlier task finds nothing to do.
    """
    _enqueue(READY_TASK, session_id)


def _enqueue(task: str, session_id: str) -> None:
    from django_q.tasks import async_task  # noqa: PLC0415 - a host with another queue need not install django-q2's app

    async_task(task, session_id, task_name=f"deliver {session_id}", save=False, ack_failure=True)


def dispatch_nowhere(session_id: str) -> None:
    """A DISPATCHER for sites without a queue: ``manage.py deliver`` finds the work."""


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What of django-q2's settings decides how it treats our tasks. `timeout`, `retry`, `guard_cycle`: seconds.

    `prefetched`: how many tasks it takes from the broker before a worker is free; `cache`: the alias of the cache
    through which its processes tell of themselves; `orm`: the alias of the database that its queue is in, or None;
    `in_redis`: whether that is in Redis; `is_sync`: whether it runs tasks where they are enqueued.
    """

    timeout: int | None
    retry: int
    workers: int
    prefetched: int
    guard_cycle: float
    cache: str
    orm: str | None
    in_redis: bool
    is_sync: bool

    @property
    def safe_retry(self) -> int:
        """The retry clock starts when a task is taken from the broker, not when a worker starts it (measured)."""
        return (self.timeout or 0) * (1 + math.ceil(self.prefetched / max(self.workers, 1)))


def queue_settings() -> QueueSettings | None:
    """django-q2's settings, or None where it is not installed."""
    if not apps.is_installed("django_q"):
        return None
    from django_q.conf import Conf  # noqa: PLC0415 - reads the settings on import

    return QueueSettings(
        timeout=Conf.TIMEOUT,
        retry=Conf.RETRY,
        workers=Conf.WORKERS,
        prefetched=Conf.QUEUE_LIMIT + Conf.BULK,
        guard_cycle=Conf.GUARD_CYCLE,
        cache=Conf.CACHE,
        orm=Conf.ORM,
        # The broker that it falls back to, where no other is named.
        in_redis=not (Conf.BROKER_CLASS or Conf.IRON_MQ or Conf.SQS or Conf.ORM or Conf.MONGO),
        is_sync=Conf.SYNC,
    )


def queue_depth() -> int | None:
    """How many tasks wait in django-q2's queue; None where it is not installed, or its broker does not answer."""
    if not apps.is_installed("django_q"):
        return None
    from django_q.brokers import get_broker  # noqa: PLC0415 - reads the settings on import

    try:
        return int(get_broker().queue_size())
    except Exception:  # noqa: BLE001 - whatever a broker raises; its text may hold the address with the password
        return None


def oldest_task_seconds() -> float | None:
    """For how long the oldest task in django-q2's ORM queue has been due; None where none is, or the queue is another.

    It grows when no cluster runs, and as well when one runs and hangs: a worker that is killed while it is idle may
    take the lock of the cluster's inner queue with it, and its own status stays green then (measured).
    """
    if not apps.is_installed("django_q"):
        return None
    from django_q.conf import Conf  # noqa: PLC0415 - reads the settings on import
    from django_q.models import OrmQ  # noqa: PLC0415 - not importable where its app is not installed

    if not Conf.ORM:
        return None
    now = timezone.now()
    due = OrmQ.objects.using(Conf.ORM).filter(key=Conf.CLUSTER_NAME, lock__lte=now)
    since = due.order_by("lock").values_list("lock", flat=True).first()
    return None if since is None else (now - since).total_seconds()


def ensure_sweep_schedule(using: str, **kwargs: Any) -> None:
    """Have django-q2 run the sweep: receiver of post_migrate, so that ``migrate`` is all the set-up there is."""
    if not apps.is_installed("django_q"):
        return
    from django_q.models import Schedule  # noqa: PLC0415 - not importable where its app is not installed

    if router.db_for_write(Schedule) != using or not _table_exists(Schedule, using):
        return
    with transaction.atomic(using=using):
        schedules = Schedule.objects.using(using).filter(func=SWEEP_TASK)
        if not schedules.update(minutes=conf.SWEEP_MINUTES):
            Schedule.objects.using(using).create(
                name=SWEEP_NAME, func=SWEEP_TASK, schedule_type=Schedule.MINUTES, minutes=conf.SWEEP_MINUTES
            )


def sweep_schedule_is_missing(using: str) -> bool:
    """Whether django-q2 keeps its schedules in the database `using`, and that of the sweep is not among them."""
    if not apps.is_installed("django_q"):
        return False
    from django_q.models import Schedule  # noqa: PLC0415 - not importable where its app is not installed

    if router.db_for_write(Schedule) != using or not _table_exists(Schedule, using):
        return False
    return not Schedule.objects.using(using).filter(func=SWEEP_TASK).exists()


def schedule_databases() -> set[str]:
    """Where django-q2 keeps its schedules; empty where it is not installed."""
    if not apps.is_installed("django_q"):
        return set()
    from django_q.models import Schedule  # noqa: PLC0415 - not importable where its app is not installed

    return {router.db_for_write(Schedule)}


def _table_exists(model: Any, using: str) -> bool:
    """Whether django-q2's tables are there: ``migrate convsessions`` alone does not make them."""
    connection = transaction.get_connection(using)
    return model._meta.db_table in connection.introspection.table_names()  # noqa: SLF001 - Django's documented model API


def reported_workers() -> int | None:
    """Workers that django-q2's clusters report just now; None where it is not installed, or nothing is reported.

    The report goes through Django's default cache: with a cache of one process only, other processes see nothing.
    """
    if not apps.is_installed("django_q"):
        return None
    from django_q.status import Stat  # noqa: PLC0415 - reads the settings on import

    try:
        clusters = Stat.get_all()
    except Exception:  # noqa: BLE001 - as in queue_depth
        return None
    return sum(len(cluster.workers) for cluster in clusters) or None
