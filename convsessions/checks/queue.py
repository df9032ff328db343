"""Checks of django-q2's settings against ours. Its facts were measured: see the notes beside them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, register
from django.db import connections, router

from convsessions.conf import conf, problems
from convsessions.enqueue import queue_settings

IN_ONE_PROCESS = ("LocMemCache", "DummyCache")
GUARD_CYCLE = 0.5


@register("convsessions")
def check_timeouts(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """W006, W002, W003: HTTP timeout < lease < django-q2's `timeout` < its `retry`, all of them set."""
    queue = queue_settings()
    if queue is None or any(problems()):
        return []
    # A task may begin its last request when its budget is nearly over.
    needed = int(conf.DELIVERY_BUDGET + conf.REQUEST_TIMEOUT + conf.LEASE_GRACE) + 1
    at_least = f"{needed} or more with your CONVSESSIONS values"
    if not (_is_whole(queue.timeout) and _is_whole(queue.retry)):
        # Without a timeout, a task that hangs keeps its worker for ever; others than whole numbers never fire.
        hint = f'Set Q_CLUSTER["timeout"] and ["retry"] to whole numbers of seconds, the timeout to {at_least}.'
        message = "django-q2's timeout or retry is missing, or no whole number."
        return [checks.Warning(message, hint=hint, id="convsessions.W006")]
    if queue.timeout is None or queue.timeout < needed:
        hint = f'Set Q_CLUSTER["timeout"] to {at_least}.'
        message = "django-q2's timeout can hit a delivery in the middle of its work."
        return [checks.Warning(message, hint=hint, id="convsessions.W002")]
    if queue.retry <= queue.safe_retry:
        hint = f'Set Q_CLUSTER["retry"] above {queue.safe_retry}: timeout * (1 + ceil((queue_limit + bulk) / workers)).'
        message = "django-q2 repeats tasks that are still queued or running."
        return [checks.Warning(message, hint=hint, id="convsessions.W003")]
    return []


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


@register("convsessions")
def check_place(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """W016: the queue is in a database that has its table. It need not be that of the journal."""
    queue = queue_settings()
    if queue is None or queue.orm is None:
        return []
    # django-q2 asks no router for its queue, but `migrate` does.
    if queue.orm in connections and router.allow_migrate(queue.orm, "django_q", model_name="ormq"):
        return []
    hint = 'Set Q_CLUSTER["orm"] to the alias of the database in which DATABASE_ROUTERS have django_q.'
    message = f"django-q2 looks for its queue in the database {queue.orm!r}, which has none."
    return [checks.Warning(message, hint=hint, id="convsessions.W016")]


@register("convsessions")
def check_habits(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """W014, W015: what else of django-q2's settings works otherwise than one would think."""
    queue = queue_settings()
    if queue is None:
        return []
    found: list[CheckMessage] = []
    if queue.guard_cycle < GUARD_CYCLE and queue.guard_cycle != GUARD_CYCLE / 2:
        hint = f'Set Q_CLUSTER["guard_cycle"] = {GUARD_CYCLE}.'
        message = "With this guard_cycle django-q2 never ends workers that hang."  # measured with 0.1, 0.2 and 0.3
        found.append(checks.Warning(message, hint=hint, id="convsessions.W014"))
    if queue.is_sync:
        hint = 'Remove Q_CLUSTER["sync"], or silence this in the settings of your tests.'
        message = "django-q2 delivers within the request that records a write, and makes it wait for the API."
        found.append(checks.Warning(message, hint=hint, id="convsessions.W015"))
    return found


@register("convsessions", deploy=True)
def check_deployment(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """I001, I002: good to know, and nothing that has to be mended. With ``check --deploy`` only."""
    queue = queue_settings()
    if queue is None:
        return []
    found: list[CheckMessage] = []
    if settings.CACHES.get(queue.cache, {}).get("BACKEND", "").endswith(IN_ONE_PROCESS):
        hint = "Use a cache that processes share, or manage.py convsessions_doctor, which does not need one."
        message = "qinfo and qmonitor show no clusters: they tell of themselves through a cache of their own process."
        found.append(checks.Info(message, hint=hint, id="convsessions.I001"))
    if queue.in_redis:
        hint = "Nothing is lost, for the sweep finds the work within SWEEP_MINUTES. The ORM broker loses none."
        message = "Tasks in Redis are lost when a cluster is killed, and delivery is late then."
        found.append(checks.Info(message, hint=hint, id="convsessions.I002"))
    return found
