from __future__ import annotations

from typing import Any

import pytest
from openai import NotFoundError, OpenAI

from convsessions.sandbox.testing import SandboxProcess

from .conftest import raw, texts, user


@pytest.fixture
def ids(client: OpenAI, conversation: str) -> list[str]:
    """The ids of 45 items "0" … "44"."""
    batches = [[user(str(n)) for n in range(start, min(start + 20, 45))] for start in (0, 20, 40)]
    pages = [client.conversations.items.create(conversation, items=batch) for batch in batches]
    return [item.id for page in pages for item in page.data]


def test_an_empty_list_has_null_ids(client: OpenAI, conversation: str) -> None:
    assert raw(client.conversations.items.list(conversation)) == {
        "object": "list",
        "data": [],
        "first_id": None,
        "has_more": False,
        "last_id": None,
    }


def test_the_list_is_newest_first_and_20_long_by_default(client: OpenAI, conversation: str, ids: list[str]) -> None:
    page = raw(client.conversations.items.list(conversation))

    assert texts(page["data"]) == [str(n) for n in range(44, 24, -1)]
    assert (page["first_id"], page["last_id"], page["has_more"]) == (ids[44], ids[25], True)


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", [1, 9, 15, 45, 100])
def test_paging_to_the_end_gives_every_item_once(
    client: OpenAI, conversation: str, ids: list[str], order: Any, limit: int
) -> None:
    read = [item.id for item in client.conversations.items.list(conversation, order=order, limit=limit)]

    assert read == (ids if order == "asc" else ids[::-1])


def test_after_is_exclusive_and_has_more_is_right_at_the_end(client: OpenAI, conversation: str, ids: list[str]) -> None:
    page = client.conversations.items.list(conversation, order="asc", after=ids[41], limit=3)

    assert ([item.id for item in page.data], page.has_more) == (ids[42:], False)
    assert client.conversations.items.list(conversation, order="asc", after=ids[44]).data == []


@pytest.mark.parametrize("cursor", ["deleted", "msg_0", "\0"])
def test_a_cursor_that_is_not_there_is_404_with_param_after(
    client: OpenAI, conversation: str, ids: list[str], cursor: str
) -> None:
    client.conversations.items.delete(ids[3], conversation_id=conversation)

    with pytest.raises(NotFoundError) as missing:
        client.conversations.items.list(conversation, after=ids[3] if cursor == "deleted" else cursor)

    assert missing.value.param == "after"


IMAGE = {"type": "input_image", "detail": "low", "image_url": "https://example.com/x.png"}
OUTPUT = {"type": "output_text", "text": "x", "annotations": [], "logprobs": [{"token": "x"}]}
HIDDEN = [
    # sent, include value, hidden part as path and what stands there without it
    ({"role": "user", "content": [IMAGE]}, "message.input_image.image_url", ("content", 0, "image_url"), None),
    ({"role": "assistant", "content": [OUTPUT]}, "message.output_text.logprobs", ("content", 0, "logprobs"), []),
    (
        {"type": "reasoning", "summary": [], "encrypted_content": "secret"},
        "reasoning.encrypted_content",
        ("encrypted_content",),
        ...,
    ),
    (
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": "u"}},
        "computer_call_output.output.image_url",
        ("output", "image_url"),
        None,
    ),
    (
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "sources": [1]}},
        "web_search_call.action.sources",
        ("action", "sources"),
        ...,
    ),
]


def at(item: Any, path: tuple[Any, ...]) -> Any:
    """What stands at `path`, or ... where there is nothing."""
    for step in path:
        if isinstance(item, dict) and step not in item:
            return ...
        item = item[step]
    return item


@pytest.mark.parametrize(("sent", "include", "path", "without"), HIDDEN)
def test_some_content_comes_only_if_it_is_included(
    client: OpenAI, conversation: str, sent: dict[str, Any], include: Any, path: tuple[Any, ...], without: Any
) -> None:
    items = client.conversations.items
    created = raw(items.create(conversation, items=[sent]))["data"][0]

    full = [
        raw(items.list(conversation, include=[include]))["data"][0],
        raw(items.retrieve(created["id"], conversation_id=conversation, include=[include])),
    ]
    bare = [created, raw(items.list(conversation))["data"][0]]
    bare.append(raw(items.retrieve(created["id"], conversation_id=conversation)))

    assert [at(item, path) for item in bare] == [without] * 3
    assert [at(item, path) for item in full] == [at(sent, path)] * 2


def test_creating_honours_include_too(client: OpenAI, conversation: str) -> None:
    sent = {"role": "user", "content": [IMAGE]}

    page = client.conversations.items.create(conversation, items=[sent], include=["message.input_image.image_url"])

    assert raw(page)["data"][0]["content"] == [IMAGE]


LOST = [
    ({"role": "assistant", "content": "x", "phase": "commentary"}, "phase", ...),
    ({"type": "shell_call", "call_id": "c", "action": {}, "environment": {"type": "local"}}, "environment", ...),
    ({"type": "file_search_call", "id": "fs_1", "queries": [], "status": "completed", "results": [1]}, "results", None),
    (
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "status": "completed",
            "container_id": "c",
            "code": "1",
            "outputs": [1],
        },
        "outputs",
        None,
    ),
]


@pytest.mark.parametrize(("sent", "field", "instead"), LOST)
def test_some_content_never_comes_back(
    client: OpenAI, sandbox: SandboxProcess, conversation: str, sent: dict[str, Any], field: str, instead: Any
) -> None:
    client.conversations.items.create(conversation, items=[sent])

    every = ["file_search_call.results", "code_interpreter_call.outputs"]
    (item,) = raw(client.conversations.items.list(conversation, include=every))["data"]

    assert item.get(field, ...) == instead
    assert sandbox.items(conversation)[0][field] == sent[field]
