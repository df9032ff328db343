"""How items come back, and what becomes of ids."""

from __future__ import annotations

import json
import re
import threading
from typing import Any

import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from convsessions.sandbox.shapes import ITEMS
from convsessions.sandbox.testing import SandboxProcess

from .conftest import call, raw, texts, user

REWRITTEN = [
    (
        {"role": "user", "content": "Hi"},
        {
            "type": "message",
            "status": "completed",
            "content": [{"type": "input_text", "text": "Hi"}],
            "role": "user",
        },
    ),
    (
        {"role": "assistant", "content": "Hi"},
        {
            "type": "message",
            "status": "completed",
            "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "Hi"}],
            "role": "assistant",
        },
    ),
    (
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Hi"}]},
        {
            "type": "message",
            "status": "completed",
            "content": [{"type": "input_text", "text": "Hi"}],
            "role": "developer",
        },
    ),
    (
        call(),
        {"type": "function_call", "status": "completed", "call_id": "call_1", "name": "f", "arguments": "{}"},
    ),
    (
        {"type": "function_call_output", "call_id": "call_1", "output": "22"},
        {"type": "function_call_output", "status": "completed", "call_id": "call_1", "output": "22"},
    ),
    (
        {"type": "custom_tool_call", "call_id": "call_1", "name": "f", "input": "x"},
        {"type": "custom_tool_call", "call_id": "call_1", "name": "f", "input": "x"},
    ),
]


@pytest.mark.parametrize(("sent", "stored"), REWRITTEN)
def test_items_come_back_rewritten(
    client: OpenAI, conversation: str, sent: dict[str, Any], stored: dict[str, Any]
) -> None:
    (item,) = raw(client.conversations.items.create(conversation, items=[sent]))["data"]

    assert {**stored, "id": item["id"]} == item
    assert raw(client.conversations.items.retrieve(item["id"], conversation_id=conversation)) == item


@pytest.mark.parametrize(
    ("sent", "prefix"),
    [
        (user(), "msg"),
        (call(), "fc"),
        ({"type": "function_call_output", "call_id": "call_1", "output": "22"}, "fc"),
        ({"type": "reasoning", "summary": [], "encrypted_content": "x"}, "rs"),
    ],
)
def test_ids_have_the_prefix_of_the_type_and_48_hex_digits(
    client: OpenAI, conversation: str, sent: dict[str, Any], prefix: str
) -> None:
    page = client.conversations.items.create(conversation, items=[sent])

    assert re.fullmatch(prefix + r"_[0-9a-f]{48}", page.data[0].id)


def test_a_batch_keeps_its_order_and_goes_to_the_end(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    client.conversations.items.create(conversation, items=[user("1"), user("2")])

    page = client.conversations.items.create(conversation, items=[user("3"), user("4"), user("5")])

    assert texts(raw(page)["data"]) == ["3", "4", "5"]
    assert (page.first_id, page.last_id, page.has_more) == (page.data[0].id, page.data[2].id, False)
    assert texts(sandbox.items(conversation)) == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("text", ["a\0b", "ü 😀 \u2028", "\ud83d", 'quote " \\ \x7f', "", "x" * 3_000_000])
def test_strings_survive_byte_for_byte(client: OpenAI, sandbox: SandboxProcess, conversation: str, text: str) -> None:
    # Escaped here, for the client cannot send a lone surrogate.
    body = json.dumps({"items": [user(text)]}).encode()

    client.post(f"/conversations/{conversation}/items", content=body, cast_to=object)

    assert texts(sandbox.items(conversation)) == [text]
    assert texts(raw(client.conversations.items.list(conversation))["data"]) == [text]


def test_an_unknown_id_is_replaced(client: OpenAI, conversation: str) -> None:
    page = client.conversations.items.create(conversation, items=[user(id="msg_of_my_own")])

    assert re.fullmatch(r"msg_[0-9a-f]{48}", page.data[0].id)


def test_an_id_of_this_conversation_is_refused_with_its_whole_batch(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    known = client.conversations.items.create(conversation, items=[user("1")]).data[0].id

    with pytest.raises(BadRequestError) as refused:
        client.conversations.items.create(conversation, items=[user("2"), user("3", id=known)])

    assert (refused.value.code, refused.value.param) == ("item_already_in_conversation", "items")
    assert texts(sandbox.items(conversation)) == ["1"]


def test_an_id_of_another_conversation_links_the_original_content(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    other = client.conversations.create().id
    original = client.conversations.items.create(other, items=[user("original")]).data[0].id

    page = client.conversations.items.create(conversation, items=[user("sent", id=original), user("new")])

    assert (page.data[0].id, texts(raw(page)["data"])) == (original, ["original", "new"])
    assert sandbox.items(other)[0] == sandbox.items(conversation)[0]


def test_a_reference_links_an_item_too_and_its_target_outlives_its_first_conversation(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    other = client.conversations.create().id
    original = client.conversations.items.create(other, items=[user("original")]).data[0].id
    client.conversations.delete(other)

    client.conversations.items.create(conversation, items=[{"type": "item_reference", "id": original}])

    assert texts(sandbox.items(conversation)) == ["original"]


def test_one_id_can_stand_twice_in_one_list(client: OpenAI, sandbox: SandboxProcess, conversation: str) -> None:
    other = client.conversations.create().id
    original = client.conversations.items.create(other, items=[user("original")]).data[0].id

    client.conversations.items.create(conversation, items=[user(id=original), user("new"), user(id=original)])

    assert texts(sandbox.items(conversation)) == ["original", "new", "original"]


def test_deleting_an_item_leaves_the_others_and_other_conversations(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    other = client.conversations.create().id
    first, second = (i.id for i in client.conversations.items.create(other, items=[user("1"), user("2")]).data)
    client.conversations.items.create(conversation, items=[user(id=first)])

    client.conversations.items.delete(first, conversation_id=other)

    assert [item["id"] for item in sandbox.items(other)] == [second]
    assert texts(sandbox.items(conversation)) == ["1"]
    with pytest.raises(NotFoundError):
        client.conversations.items.delete(first, conversation_id=other)
    with pytest.raises(NotFoundError):
        client.conversations.items.retrieve(first, conversation_id=other)


@pytest.mark.parametrize("kind", sorted(kind for kind, shape in ITEMS.items() if kind != "item_reference"))
def test_every_type_of_item_is_taken_with_its_required_fields(
    client: OpenAI, sandbox: SandboxProcess, conversation: str, kind: str
) -> None:
    shape = ITEMS[kind]
    item = {"type": kind, "id": f"{shape.prefix}_1", **dict.fromkeys(shape.nullable)}
    item |= {name: "completed" if name == "status" else "x" for name in shape.required}
    if kind == "message":
        item["role"] = "user"

    client.conversations.items.create(conversation, items=[item])

    (stored,) = sandbox.items(conversation)
    assert stored["id"].startswith(f"{shape.prefix}_")
    assert shape.required <= stored.keys()


def test_concurrent_appends_to_one_conversation_never_mix(
    client: OpenAI, sandbox: SandboxProcess, conversation: str
) -> None:
    def append(writer: int) -> None:
        for batch in range(5):
            items = [user(f"{writer}.{batch}.{n}") for n in range(4)]
            client.conversations.items.create(conversation, items=items)

    threads = [threading.Thread(target=append, args=[writer]) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    stored = texts(sandbox.items(conversation))
    batches = [stored[start : start + 4] for start in range(0, len(stored), 4)]
    assert len(batches) == 20
    assert all(batch == [f"{batch[0][:-2]}.{n}" for n in range(4)] for batch in batches)
    for writer in "0123":
        assert [b[0] for b in batches if b[0][0] == writer] == [f"{writer}.{n}.0" for n in range(5)]
