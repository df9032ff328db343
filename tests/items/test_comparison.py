"""`comparison`: an item read back is recognised however the server writes it, and nothing else is taken for it."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from convsessions.items.comparison import contained, core, differences, normalised_digest
from convsessions.items.kinds import kind_of
from convsessions.items.sanitise import sanitise
from tests.items.listed import Item, changed, leaves, stored_as, text_part, user
from tests.items.recorded import (
    SENT_MESSAGE,
    STORED_CALL,
    STORED_DEVELOPER,
    STORED_MESSAGE,
    STORED_OUTPUT,
    STORED_REPLY,
)
from tests.items.strategies import items

RECOGNISED: dict[str, tuple[Item, Item]] = {
    "recorded: parts as they were sent": (SENT_MESSAGE, STORED_MESSAGE),
    "recorded: a string became a part": (user("second item"), STORED_MESSAGE),
    "recorded: text of the assistant": (
        {"role": "assistant", "content": STORED_REPLY["content"][0]["text"]},  # type: ignore[index]
        STORED_REPLY,
    ),
    "recorded: a developer's message": (
        {"role": "developer", "content": "Always begin your replies with 'Arr, matey'"},
        STORED_DEVELOPER,
    ),
    "recorded: a call": (
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": STORED_CALL["call_id"],
            "name": "get_weather_at_location",
            "arguments": '{"location":"San Francisco, CA"}',
        },
        STORED_CALL,
    ),
    "recorded: an output": (
        {"type": "function_call_output", "call_id": STORED_OUTPUT["call_id"], "output": "22 celcius and windy"},
        STORED_OUTPUT,
    ),
    "reported: agentic-api lists the assistant's text as input_text": (
        {"role": "assistant", "content": [text_part("x", "output_text")]},
        {"id": "m", "type": "message", "role": "assistant", "content": [text_part("x")]},
    ),
    "reported: agentic-api gives a call no status": (
        {**STORED_CALL, "status": "completed"},
        {key: value for key, value in STORED_CALL.items() if key != "status"},
    ),
    "documented: the third spelling of text": (
        user([text_part("x"), text_part("y")]),
        user([text_part("x", "text"), text_part("y", "output_text")]),
    ),
    "an output's string became a part": (
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"type": "function_call_output", "call_id": "c", "output": [text_part("x")]},
    ),
    "a part became a string": (user([text_part("x")]), user("x", type="message")),
    "empty annotations were dropped": (user([{**text_part("x"), "annotations": [], "logprobs": []}]), user("x")),
    "nulls stand for what is absent": (user("x", phase=None), user("x", name=None)),
    "more fields than were sent": (user("x"), user([{**text_part("x"), "annotations": [{"url": "u"}]}], tone="kind")),
    "a number in another notation": ({"type": "x", "n": 1}, {"type": "x", "n": 1.0}),
    "a reference is linked under its id": ({"type": "item_reference", "id": STORED_REPLY["id"]}, STORED_REPLY),
    "a reference without a type": ({"id": STORED_REPLY["id"]}, STORED_REPLY),
    "free-form JSON with other nulls": (
        {"type": "tool_search_call", "arguments": {"q": "x", "limit": None}},
        {"type": "tool_search_call", "arguments": {"q": "x", "offset": None}},
    ),
}

DIFFERENT: dict[str, tuple[Item, Item, list[str]]] = {
    "another text": (user("x"), user([text_part("y")]), ["content[0].text"]),
    "a space more": (user("x"), user([text_part("x ")]), ["content[0].text"]),
    "another case": (user("x"), user([text_part("X")]), ["content[0].text"]),
    "another Unicode normal form": (user("e\u0301"), user([text_part("\u00e9")]), ["content[0].text"]),
    "a text that lost its U+0000": (user("a\x00b"), user([text_part("ab")]), ["content[0].text"]),
    "a text cut short": (user("x" * 100), user([text_part("x" * 99)]), ["content[0].text"]),
    "another role": (user("x"), {"role": "assistant", "content": [text_part("x")]}, ["role"]),
    "another type": ({"type": "shell_call"}, {"type": "local_shell_call"}, ["type"]),
    "one part more": (user("x"), user([text_part("x"), text_part("y")]), ["content"]),
    "two parts in one": (user([text_part("x"), text_part("y")]), user([text_part("xy")]), ["content"]),
    "parts in another order": (
        user([text_part("x"), text_part("y")]),
        user([text_part("y"), text_part("x")]),
        ["content[0].text", "content[1].text"],
    ),
    "no parts for empty text": (user(""), user([]), ["content"]),
    "a refusal for text": (
        {"role": "assistant", "content": "x"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "x"}]},
        ["content[0].type", "content[0].text"],
    ),
    "annotations that went missing": (
        user([{**text_part("x"), "annotations": [{"url": "u"}]}]),
        user([{**text_part("x"), "annotations": []}]),
        ["content[0].annotations"],
    ),
    "another call": (STORED_CALL, {**STORED_CALL, "call_id": "call_2"}, ["call_id"]),
    "arguments with another space": (STORED_CALL, {**STORED_CALL, "arguments": "{}"}, ["arguments"]),
    "a field that went missing": (STORED_CALL, {"type": "function_call"}, ["arguments", "call_id", "name"]),
    "an output that failed": (
        {"type": "apply_patch_call_output", "call_id": "c", "status": "failed"},
        {"type": "apply_patch_call_output", "call_id": "c", "status": "completed"},
        ["status"],
    ),
    "a boolean for a number": ({"type": "x", "n": 1}, {"type": "x", "n": True}, ["n"]),
    "a number for a boolean": ({"type": "x", "n": False}, {"type": "x", "n": 0}, ["n"]),
    "a string for a number": ({"type": "x", "n": 1}, {"type": "x", "n": "1"}, ["n"]),
    "a list for an object": ({"type": "x", "n": {}}, {"type": "x", "n": []}, ["n"]),
    "a large integer that lost its last digit": (
        {"type": "x", "n": 2**53 + 1},
        {"type": "x", "n": float(2**53)},
        ["n"],
    ),
    "a null in a list": ({"type": "x", "n": [None]}, {"type": "x", "n": [0]}, ["n[0]"]),
    "free-form JSON with one key more": (
        {"type": "tool_search_call", "arguments": {"q": "x"}},
        {"type": "tool_search_call", "arguments": {"q": "x", "all": True}},
        ["arguments"],
    ),
    "free-form JSON deep inside": (
        {"type": "tool_search_call", "arguments": {"a": [{"b": 1, "c": 2}]}},
        {"type": "tool_search_call", "arguments": {"a": [{"b": 2, "c": 3}]}},
        ["arguments"],
    ),
    "a reference to another item": ({"type": "item_reference", "id": "msg_1"}, STORED_REPLY, ["id"]),
    "a key that is no field of the API": ({"type": "x", "My Key": 1}, {"type": "x", "My Key": 2}, ["?"]),
}


@pytest.mark.parametrize("name", RECOGNISED)
def test_an_item_is_recognised_as_a_server_writes_it(name: str) -> None:
    sent, stored = RECOGNISED[name]

    assert differences(sent, stored) == []
    assert contained(sent, stored)


@pytest.mark.parametrize("name", DIFFERENT)
def test_another_item_is_not_taken_for_it(name: str) -> None:
    sent, stored, paths = DIFFERENT[name]

    assert differences(sent, stored) == paths
    assert not contained(sent, stored)


@given(items, st.sampled_from(["input_text", "output_text", "text"]))
def test_every_item_is_recognised_in_what_a_faithful_server_lists(item: Item, text_kind: str) -> None:
    sent = sanitise(item)
    stored = stored_as(sent, text_kind)
    if kind_of(sent) == "item_reference":
        stored["id"] = sent["id"]

    assert differences(sent, stored) == []
    assert contained(sent, stored)
    assert normalised_digest(sent) == normalised_digest(stored)
    assert core(sent) == core(stored)


@given(items, st.data())
def test_no_value_that_was_sent_may_change(item: Item, data: st.DataObject) -> None:
    sent = sanitise(item)
    ways = [way for way in leaves(sent) if way not in {("id",), ("type",)}]
    assume(ways)
    way = data.draw(st.sampled_from(ways))

    stored = stored_as(changed(sent, way))

    assert not contained(sent, stored)
    assert len(differences(sent, stored)) == 1


@given(items, items)
def test_contained_is_no_differences(one: Item, other: Item) -> None:
    assert contained(one, other) is (not differences(one, other))


@given(items, items)
def test_comparing_changes_neither_item(sent: Item, stored: Item) -> None:
    before = json.dumps([sent, stored])

    differences(sent, stored)
    normalised_digest(sent)
    core(stored)

    assert json.dumps([sent, stored]) == before
