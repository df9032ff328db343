"""The threads of async callers: none is waited for that does not exist."""

from __future__ import annotations

import threading

import pytest
from django.db import DatabaseError, connection

from convsessions.delivery.threads import Threads
from tests.histories import eventually

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 10


@pytest.fixture
def threads(quick):
    quick["ASYNC_THREADS"] = 1
    threads = Threads()
    yield threads
    threads.close()


class AtItsLimit:
    """The system starts no thread any more, until it is over."""

    def __init__(self, monkeypatch) -> None:
        self.over, self.start = False, threading.Thread.start
        # A bound method would not be given the thread.
        monkeypatch.setattr(threading.Thread, "start", lambda thread: self.begin(thread))  # noqa: PLW0108

    def begin(self, thread) -> None:
        if not self.over:
            raise RuntimeError("can't start new thread")
        self.start(thread)


def test_a_system_that_starts_no_thread_is_an_error_at_once_and_leaves_nothing_behind(threads, monkeypatch):
    limit = AtItsLimit(monkeypatch)
    done = []
    with pytest.raises(RuntimeError):
        threads.submit(lambda: done.append("refused"))

    limit.over = True
    threads.submit(lambda: done.append("taken")).result(SECONDS)
    assert done == ["taken"]


def test_a_system_that_starts_no_further_thread_leaves_the_work_to_those_alive(threads, monkeypatch, quick):
    quick["ASYNC_THREADS"] = 2
    going_on = threading.Event()
    first = threads.submit(going_on.wait)
    AtItsLimit(monkeypatch)
    second = threads.submit(lambda: "done")
    going_on.set()

    assert (first.result(SECONDS), second.result(SECONDS)) == (True, "done")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_dies_with_its_connection_is_followed_by_another(threads):
    def breaks() -> threading.Thread:
        def cannot_be_closed() -> None:
            raise DatabaseError("the driver is confused")

        connection.ensure_connection()
        connection.errors_occurred = True
        connection.close_if_unusable_or_obsolete = cannot_be_closed
        return threading.current_thread()

    died = threads.submit(breaks).result(SECONDS)
    eventually(lambda: not died.is_alive(), seconds=SECONDS)
    assert threads.submit(lambda: "done").result(SECONDS) == "done"
