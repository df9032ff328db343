"""Threads for the short steps that async callers take in the database.

Django's own `sync_to_async` runs everything in one thread, where a slow statement of one session would stop all the
others; the event loop's default executor is shared with name resolution and whatever else the host does. So these are
a few threads of our own, each with its own connections. A thread that has had nothing to do for a while closes its
connections and ends.

Where the caller is sync code inside a transaction (a `TestCase`, or `async_to_sync` within `atomic`), the step runs in
the caller's thread instead, and so joins that transaction.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import AsyncToSync, sync_to_async
from django.db import connections

from convsessions.conf import conf

P = ParamSpec("P")
T = TypeVar("T")

IDLE_SECONDS = 1.0
"""How long a thread keeps its connections without work."""

Job = tuple["Future[Any]", Callable[[], Any]]


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `function` in a thread, and return what it returns; contract as the module says.

    A step that has begun is not ended by a cancellation; one that has not is dropped.
    """
    if _sync_caller() and await sync_to_async(_in_transaction)(of_tests=True):
        return await sync_to_async(function)(*args, **kwargs)
    return await asyncio.wrap_future(submit(function, *args, **kwargs))


def asynchronous(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The async twin of `function`, with its contract: it calls `function` with `in_thread`."""

    @functools.wraps(function)
    async def twin(*args: P.args, **kwargs: P.kwargs) -> T:
        return await in_thread(function, *args, **kwargs)

    return twin


async def refuse_transaction() -> None:
    """Raise RuntimeError where the code that called into this event loop has a transaction open."""
    if _below_the_loop(_in_transaction) or (_sync_caller() and await sync_to_async(_in_transaction)()):
        raise RuntimeError("a request to the API must not be made inside a transaction")


def submit(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """Have `function` called in one of the threads, in the caller's context."""
    work = functools.partial(contextvars.copy_context().run, functools.partial(function, *args, **kwargs))
    return _threads().submit(work)


def close() -> None:
    """End the threads once they have done what they were given, and wait for that; the next step begins new ones."""
    _threads().close()


class Threads:
    """At most ASYNC_THREADS threads, begun when there is work for them."""

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._alive: set[threading.Thread] = set()
        self._idle = 0
        self._closing = False

    def submit(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._changed:
            self._jobs.append((future, work))
            if self._idle >= len(self._jobs) or len(self._alive) >= conf.ASYNC_THREADS:
                self._changed.notify()
            elif not self._begin_thread():
                # At the system's limit, or at the interpreter's end. Whoever is alive does it; else nobody would.
                if not self._alive:
                    self._jobs.pop()
                    raise RuntimeError("no thread can be started")
                self._changed.notify()
        return future

    def _begin_thread(self) -> bool:
        thread = threading.Thread(target=self._run, name="convsessions", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._alive.add(thread)
        return True

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            alive = list(self._alive)
        for thread in alive:
            thread.join()
        self._closing = False

    def _run(self) -> None:
        try:
            while job := self._next():
                _do(*job)
                _mend_connections()
                del job  # it would be kept alive until the next one comes
        finally:
            with self._changed:  # whatever ended it: a thread that counts and is none would be waited for in vain
                self._alive.discard(threading.current_thread())
            connections.close_all()

    def _next(self) -> Job | None:
        """The next job; None when this thread is to end, and does not count any more."""
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._jobs or self._closing, IDLE_SECONDS)
            self._idle -= 1
            if self._jobs:
                return self._jobs.popleft()
            self._alive.discard(threading.current_thread())
            return None


@functools.lru_cache(maxsize=1)
def _threads_of(pid: int) -> Threads:
    return Threads()


def _threads() -> Threads:
    # Threads do not survive a fork.
    return _threads_of(os.getpid())


def _do(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
        future.set_exception(error)
    else:
        future.set_result(result)


def _mend_connections() -> None:
    """What Django does between two requests. CONN_MAX_AGE 0 means here: until the thread is idle."""
    for connection in connections.all(initialized_only=True):
        if connection.errors_occurred or connection.settings_dict["CONN_MAX_AGE"]:
            connection.close_if_unusable_or_obsolete()


def _sync_caller() -> bool:
    """Whether sync code is waiting, in a thread of its own, for what runs in this event loop."""
    waiting = getattr(AsyncToSync.executors, "current", None)
    return bool(waiting or asyncio.get_running_loop() in AsyncToSync.loop_thread_executors)


def _below_the_loop(function: Callable[[], T]) -> T:
    """Call `function` as the code would that started the running event loop in this thread.

    Within a loop, Django's connections are others than in the same thread outside.
    """
    loop = asyncio.get_running_loop()
    asyncio._set_running_loop(None)  # noqa: SLF001 - exported for event loops; nothing else runs in this thread now
    try:
        return function()
    finally:
        asyncio._set_running_loop(loop)  # noqa: SLF001 - as above


def _in_transaction(*, of_tests: bool = False) -> bool:
    """Whether this thread has a transaction open; that of a `TestCase` counts only with `of_tests`."""
    return any(
        of_tests or not getattr(block, "_from_testcase", False)
        for connection in connections.all(initialized_only=True)
        for block in connection.atomic_blocks
    )
