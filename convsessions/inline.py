"""A DISPATCHER for small sites without a queue: the process that recorded a write delivers it, in a thread.

The request does not wait for the API, nor share its transaction, for doorbells ring after the commit. What it costs: a
process that is killed, or recycled by its server, leaves the rest undone until somebody delivers it, so that
``manage.py deliver`` from cron (or `operations.sweep`) has to be the net; and web processes do the work of workers, at
most ASYNC_THREADS sessions at a time in each. A process that ends by itself first does what it has begun.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import uuid

from . import operations
from .delivery.threads import Threads
from .exceptions import SessionNotFound


def dispatch_in_thread(session_id: str) -> None:
    """Deliver the session soon, in this process; returns at once."""
    _threads(os.getpid()).submit(functools.partial(_deliver, uuid.UUID(session_id)))


def _deliver(session_id: uuid.UUID) -> None:
    with contextlib.suppress(SessionNotFound):  # the host deleted it meanwhile
        operations.try_to_deliver(session_id)


@functools.lru_cache(maxsize=1)
def _threads(pid: int) -> Threads:
    # Threads do not survive a fork.
    threads = Threads()
    atexit.register(threads.close)
    return threads
