"""Which requests a fault meets, and how often."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from openai import InternalServerError, OpenAI

from convsessions.sandbox.testing import SandboxProcess

from .conftest import user


def fails(client: OpenAI, conversation: str) -> bool:
    try:
        client.conversations.items.create(conversation, items=[user()])
    except InternalServerError:
        return True
    return False


def test_a_fault_is_used_once_by_default(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    sandbox.fault("error_before")

    assert [fails(client, conversation) for _ in range(3)] == [True, False, False]
    assert [fault["times"] for fault in sandbox.faults()] == [0]


def test_times_and_skip_count_matching_requests(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    sandbox.fault("error_before", operation="append_items", times=2, skip=1)

    client.conversations.retrieve(conversation)

    assert [fails(client, conversation) for _ in range(5)] == [False, True, True, False, False]


def test_a_fault_without_times_stays_until_it_is_removed(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    sandbox.fault("error_before", times=None)
    before = [fails(client, conversation) for _ in range(3)]

    sandbox.clear_faults()

    assert (before, fails(client, conversation), sandbox.faults()) == ([True] * 3, False, [])


def test_a_fault_can_be_for_one_conversation(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    other = client.conversations.create().id
    sandbox.fault("error_before", conversation=other)

    assert [fails(client, conversation), fails(client, other)] == [False, True]


def test_faults_are_used_in_the_order_in_which_they_were_set(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    for kind in ("error_before", "html", "lost_after"):
        sandbox.fault(kind)

    assert fails(client, conversation)
    assert isinstance(client.conversations.items.create(conversation, items=[user()]), str)
    assert [fault["times"] for fault in sandbox.faults()] == [0, 0, 1]


def test_concurrent_requests_share_the_uses_exactly(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    sandbox.fault("error_before", times=5, skip=4)
    outcomes: list[bool] = []

    def work() -> None:
        outcomes.extend(fails(client, conversation) for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(outcomes), sum(outcomes)) == (20, 5)
    assert [(fault["times"], fault["skip"]) for fault in sandbox.faults()] == [(0, 0)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "nonsense"},
        {"kind": "html", "operation": "nonsense"},
        {"kind": "html", "nonsense": 1},
        {"kind": "stale_read", "operation": "append_items"},
        {"kind": "lossy"},
        {},
    ],
)
def test_a_fault_that_cannot_be_is_refused(sandbox: SandboxProcess, wrong: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match="400"):
        sandbox._call("POST", "faults", wrong)

    assert sandbox.faults() == []


def test_every_kind_is_described_and_done() -> None:
    from convsessions.sandbox import faults, mischief

    assert faults.KINDS.keys() == mischief.KINDS.keys()
