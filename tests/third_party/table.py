"""The cases, with what the real API does and what other servers are known to do instead."""

from __future__ import annotations

from typing import Any

from . import cases
from .cases import Case, numbered, one, user

AGENTIC, SMG = "agentic-api", "smg"
UP = [item["content"] for item in numbered(25)]
IMAGE = "https://example.org/a"
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{ "a":1}'}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "22"}


def stored(role: str, kind: str, **more: Any) -> dict[str, Any]:
    content = [{"type": kind, "text": "x", **more}]
    return {"id": "msg", "type": "message", "status": "completed", "content": content, "role": role}


def item(given: dict[str, Any], expected: dict[str, Any], source: str, **deviations: Any) -> Case:
    named = {name.replace("_", "-"): seen for name, seen in deviations.items()}
    name = (
        f"{given.get('role') or given['type']} {'in parts' if isinstance(given.get('content'), list) else ''}".strip()
    )
    return Case(f"{name}, as listed", lambda api: one(api, given), expected, source, named)


NOTHING = {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}
GONE = {"id": True, "object": "conversation.deleted", "deleted": True}
AGAIN = (400, "item_already_in_conversation", "items")

CASES = [
    Case("an empty conversation", cases.empty, NOTHING, "recorded"),
    Case(
        "the reply to an append",
        cases.batch,
        (["0", "1", "2"], {"object": "list", "first_id": 0, "has_more": False, "last_id": 2}),
        "recorded",
    ),
    Case(
        "orders and limits",
        cases.order,
        (UP, UP[:4:-1], UP[:22:-1]),
        "recorded; documented: 20 a page",
        {SMG: (UP, UP[::-1], UP[:22:-1])},
    ),
    Case(
        "cursors are exclusive, and has_more is right both ways",
        cases.cursors,
        [([2], True), ([0], False), ([], False)],
        "recorded",
        {SMG: [([2], True), ([0], True), ([], False)]},
    ),
    Case("a batch with an item of no known type is refused as a whole", cases.atomic, (400, []), "recorded"),
    Case("21 items are refused", cases.too_many, (400, 0), "reported"),
    Case(
        "a page of 101 is refused",
        cases.limit_101,
        (400, "integer_above_max_value", "limit"),
        "reported",
        {AGENTIC: (400, None, None), SMG: (200, None, None)},
    ),
    Case("equal items are two items", cases.same_content_twice, ["x", "x"], "inferred"),
    Case(
        "an id that the server does not know is not kept",
        cases.own_ids,
        False,
        "reported",
        {AGENTIC: True, SMG: True},
    ),
    Case("an id of another conversation links the original", cases.linked, ("original", True), "recorded"),
    Case("an id that is in the conversation is refused", cases.again, (AGAIN, ["original"]), "recorded"),
    Case(
        "an item is deleted once",
        cases.deleted_item,
        (["0", "2"], 404),
        "reported",
        {SMG: (["0", "2"], 200)},
    ),
    Case("a deleted cursor is named", cases.deleted_cursor, (404, "after"), "recorded", {SMG: (200, None)}),
    Case("a deleted conversation is gone", cases.deleted_conversation, (GONE, 404, 404, 404), "recorded; reported"),
    Case("metadata is replaced", cases.metadata, {"b": "2"}, "recorded", {SMG: {"a": "1", "b": "2"}}),
    Case(
        "a body that is no JSON is refused",
        cases.bad_json,
        (400, "invalid_json"),
        "reported",
        {AGENTIC: (400, "invalid_request_error"), SMG: (400, None)},
    ),
    Case("U+0000 is kept", cases.exact("a\x00b"), True, "not known of the real API"),
    Case("other Unicode is kept", cases.exact("é\u202e\U0001f600e\u0301\u2028"), True, "inferred"),
    Case("what looks like an escape is kept", cases.exact("\\u0000 \\n"), True, "inferred"),
    Case("an image is not listed", cases.image([]), None, "documented", {AGENTIC: IMAGE, SMG: IMAGE}),
    Case(
        "an image is listed if asked for",
        cases.image(["message.input_image.image_url"]),
        IMAGE,
        "documented",
        {AGENTIC: 400},
    ),
    item(user("x"), stored("user", "input_text"), "recorded"),
    item({"role": "developer", "content": "x"}, stored("developer", "input_text"), "recorded"),
    item(
        {"role": "assistant", "content": "x"},
        stored("assistant", "output_text", annotations=[], logprobs=[]),
        "recorded of responses",
        agentic_api=stored("assistant", "input_text"),
        smg=stored("assistant", "output_text", annotations=[]),
    ),
    item(
        {"role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
        stored("assistant", "output_text", annotations=[], logprobs=[]),
        "recorded of responses",
        agentic_api=stored("assistant", "output_text"),
        smg=stored("assistant", "output_text"),
    ),
    item(CALL, {**CALL, "id": "fc", "status": "completed"}, "recorded", agentic_api={**CALL, "id": "fc"}),
    item(
        OUTPUT,
        {**OUTPUT, "id": "fc", "status": "completed"},
        "recorded",
        agentic_api={**OUTPUT, "id": "item"},
        smg={**OUTPUT, "id": "fun", "status": "completed"},
    ),
]
