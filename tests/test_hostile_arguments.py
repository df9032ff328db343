"""Whatever the public functions are given, they take it, or raise what they say they raise; and they come to an end."""

from __future__ import annotations

import asyncio
import inspect
import signal
import uuid

import pytest

from convsessions import operations
from convsessions.exceptions import ConvsessionsError, InvalidInput
from tests.histories import append, deliver_until_settled, messages

pytestmark = pytest.mark.django_db(transaction=True)

FUNCTIONS = [
    operations.append_items,
    operations.cancel_write,
    operations.check_conversation,
    operations.clear_session,
    operations.create_session,
    operations.delete_session,
    operations.digest_of_items,
    operations.export_items,
    operations.get_items,
    operations.get_latest_items,
    operations.get_session,
    operations.get_write,
    operations.inspect_write,
    operations.iter_items,
    operations.open_session,
    operations.pop_item,
    operations.purge_payloads,
    operations.reconcile_write,
    operations.remove_half_pairs,
    operations.resolve_write,
    operations.retry_write,
    operations.update_session,
    operations.verify_session,
    operations.wait_for_write,
]
NOT_TRIED = {"owner", "author", "actor", "progress", "dry_run", "refused", "pending", "if_version"}
"""Users and callables of the host, and truth values."""
VALUES = [
    None, "", "abc", "a\x00b", "a\ud800", 5, -1, 2**70, 10**400, 1.5, float("nan"), float("inf"), True, [], {},
    object(), b"x", "x" * 300, uuid.uuid4(), [[]], {"a": 1}, ("a",),
]  # fmt: skip
SECONDS = 5.0


@pytest.fixture
def it_ends():
    """Fails a test that goes on and on."""

    def too_long(*_):
        raise AssertionError("it does not come to an end")

    before = signal.signal(signal.SIGALRM, too_long)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_every_argument_is_taken_or_refused_as_documented(sandbox, session, quick, it_ends, function):
    quick["WAIT_MAX"] = 0.1
    deliver_until_settled(append(session, 2))
    good = {
        "session_id": session.pk, "write_id": append(session, 1).pk, "items": messages(1), "key": "k", "count": 3,
        "conversation_id": "conv_1", "timeout": 0.1, "reason": "r", "resolution": "abandon", "days": 1.0,
    }  # fmt: skip
    parameters = inspect.signature(function).parameters
    needed = {name: good[name] for name in parameters if parameters[name].default is inspect.Parameter.empty}
    for name in parameters.keys() - NOT_TRIED:
        for value in VALUES:
            it_ends()
            try:
                returned = function(**{**needed, name: value})
                list(returned) if inspect.isgenerator(returned) else None
            except ConvsessionsError:
                continue


@pytest.mark.parametrize("seconds", [None, "5", float("nan"), True, 10**400])
def test_seconds_are_a_number(session, seconds):
    write = append(session, 1)
    waits = [
        lambda: operations.wait_for_write(write.pk, timeout=seconds),
        lambda: operations.verify_session(session.pk, seconds=seconds),
        lambda: asyncio.run(operations.await_for_write(write.pk, timeout=seconds)),
        lambda: asyncio.run(operations.settled_session(session.pk, patience=seconds)),
        lambda: asyncio.run(operations.write_through(lambda: write, patience=seconds)),
    ]
    for wait, field in zip(waits, ["timeout", "seconds", "timeout", "patience", "patience"], strict=True):
        with pytest.raises(InvalidInput) as refused:
            wait()
        assert refused.value.field == field
