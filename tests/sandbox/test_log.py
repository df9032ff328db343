"""The log of requests, and the addresses that steer the sandbox."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import pytest
from openai import APITimeoutError, BadRequestError, OpenAI

from convsessions.sandbox.testing import SandboxProcess

from .conftest import eventually, texts, user


def test_a_request_is_logged_with_what_it_was_and_what_became_of_it(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    before = time.time()
    client.conversations.items.create(conversation, items=[user(), user()])
    after = time.time()

    created, appended = sandbox.requests(conversation)
    assert (created["operation"], created["applied"]) == ("create_conversation", True)
    assert before <= appended.pop("started_at") <= appended.pop("finished_at") <= after
    assert appended == {
        "id": appended["id"],
        "request_id": appended["request_id"],
        "method": "POST",
        "path": f"/v1/conversations/{conversation}/items",
        "operation": "append_items",
        "conversation": conversation,
        "items": 2,
        "status": 200,
        "fault": "",
        "applied": True,
    }


def test_refusals_and_reads_are_logged_as_changing_nothing(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    with pytest.raises(BadRequestError):
        client.conversations.items.create(conversation, items=[user(status=None)])
    client.conversations.items.list(conversation, limit=3)

    refused, read = sandbox.requests(conversation)[1:]
    assert (refused["status"], refused["items"], refused["applied"]) == (400, 1, False)
    assert (read["path"].partition("?")[2], read["status"], read["applied"]) == ("limit=3", 200, False)


def test_requests_one_after_the_other_never_overlap_in_the_log(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    lock = threading.Lock()

    def work() -> None:
        for _ in range(5):
            with lock:
                client.conversations.items.create(conversation, items=[user()])

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    rows = sandbox.requests(conversation)
    assert all(one["finished_at"] <= following["started_at"] for one, following in pairwise(rows))


def test_a_hanging_request_is_in_the_log_at_once_and_delays_nobody(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    sandbox.fault("hang_before", seconds=0.5, operation="append_items")
    with pytest.raises(APITimeoutError):
        client.with_options(timeout=0.1).conversations.items.create(conversation, items=[user()])

    client.conversations.items.list(conversation)

    hanging, read = sandbox.requests(conversation)[1:]
    assert (hanging["fault"], hanging["finished_at"], hanging["status"]) == ("hang_before", None, 0)
    assert read["finished_at"] - read["started_at"] < 0.3
    eventually(lambda: sandbox.requests(conversation)[1]["finished_at"])


def test_a_foreign_append_is_not_a_request(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    (stored,) = sandbox.append_foreign(conversation, [user("foreign")])

    assert sandbox.items(conversation) == [stored]
    assert len(sandbox.requests(conversation)) == 1


def test_latency_is_for_every_request_of_the_api(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    sandbox.settings(latency=0.1)
    client.conversations.items.list(conversation)
    sandbox.settings(latency=0)
    client.conversations.items.list(conversation)

    slow, quick = sandbox.requests(conversation)[1:]
    assert slow["finished_at"] - slow["started_at"] >= 0.1
    assert quick["finished_at"] - quick["started_at"] < 0.1


def test_a_reset_empties_everything(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    sandbox.append_foreign(conversation, [user("1")])
    sandbox.fault("html")

    sandbox.reset()

    assert (sandbox.requests(), sandbox.faults()) == ([], [])
    with pytest.raises(RuntimeError, match="404"):
        sandbox.items(conversation)


def test_the_ground_truth_is_not_paged_and_hides_nothing(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    for start in range(0, 120, 20):
        sandbox.append_foreign(conversation, [user(str(n)) for n in range(start, start + 20)])

    assert texts(sandbox.items(conversation)) == [str(n) for n in range(120)]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "requests", {}, 405),
        ("GET", "reset", None, 405),
        ("POST", "settings", {"latency": "much"}, 400),
        ("POST", "faults", ["html"], 400),
        ("GET", "conversations/conv_0", None, 404),
        ("GET", "nonsense", None, 404),
    ],
)
def test_wrong_orders_are_refused(sandbox: SandboxProcess, method: str, path: str, body: object, status: int) -> None:
    with pytest.raises(RuntimeError, match=str(status)):
        sandbox._call(method, path, body)
