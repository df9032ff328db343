"""`comparison`: an item read back is recognised however the server writes it, and nothing else is taken for it."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from convsessions.items.comparison import contained, core, differences, normalised_digest
from convsessions.items.kinds import kind_of
from convsessions.items.rewritings import LOST, Lost
from convsessions.items.sanitise import sanitise
from tests.items.recorded import (
    SENT_MESSAGE,
    STORED,
    STORED_CALL,
    STORED_DEVELOPER,
    STORED_MESSAGE,
    STORED_OUTPUT,
    STORED_REPLY,
)
from tests.items.strategies import NASTY, items, texts

Item = dict[str, Any]


def user(content: Any, **more: Any) -> Item:
    return {"role": "user", "content": content, **more}


def text_part(text: str, kind: str = "input_text") -> Item:
    return {"type": kind, "text": text}


def stored_as(sent: Item, text_kind: str = "input_text") -> Item:
    """What a faithful server lists for `sent`: written for these tests, apart from the code under test."""
    given = {key: value for key, value in copy.deepcopy(sent).items() if value is not None}
    stored = {"type": kind_of(sent), "status": "completed", **given, "id": "x_2"}
    if stored["type"] == "message" and isinstance(stored["content"], str):
        stored["content"] = [{"type": text_kind, "annotations": [], "logprobs": [], "text": stored["content"]}]
    return json.loads(json.dumps(stored))  # type: ignore[no-any-return]


def leaves(value: Any, trail: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to every string, number and boolean in `value`."""
    if isinstance(value, dict | list):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        return [way for key, inner in entries for way in leaves(inner, (*trail, key))]
    return [] if value is None else [trail]


def changed(item: Item, way: tuple[Any, ...]) -> Item:
    """`item` with another value at `way`, of the same type where there is one."""
    altered = copy.deepcopy(item)
    place: Any = altered
    for key in way[:-1]:
        place = place[key]
    old = place[way[-1]]
    place[way[-1]] = not old if isinstance(old, bool) else f"{old}!" if isinstance(old, str) else f"{old}"
    return altered


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


def with_value(row: Lost, value: Any) -> Item:
    """An item of the row's type that has `value` in the field that may be lost, or not the field if it is ``...``."""
    item: Item = {"type": row.kind, "role": "user", "action": {"type": "search"}, "output": {"type": "s"}}
    *way, last = row.path.replace("[]", "").split(".")
    place = item
    if way:
        inner: Item = {"type": "input_image"}
        place[way[0]] = [inner] if "[]" in row.path else inner
        place = inner
    if value is not ...:
        place[last] = value
    return item


@pytest.mark.parametrize("row", LOST, ids=lambda row: f"{row.kind}.{row.path}")
@pytest.mark.parametrize("left", [..., None, [], {}], ids=["absent", "null", "empty list", "empty object"])
def test_a_field_that_the_api_may_lose_is_not_missed(row: Lost, left: Any) -> None:
    sent, stored = with_value(row, {"a": [1]}), with_value(row, left)

    assert differences(sent, stored) == []
    assert normalised_digest(sent) == normalised_digest(stored)


@pytest.mark.parametrize("row", LOST, ids=lambda row: f"{row.kind}.{row.path}")
def test_a_field_that_the_api_may_lose_must_be_right_when_it_is_there(row: Lost) -> None:
    assert differences(with_value(row, "ours"), with_value(row, "theirs")) == [row.path.replace("[]", "[0]")]


@pytest.mark.parametrize("row", LOST, ids=lambda row: f"{row.kind}.{row.path}")
def test_a_field_that_the_api_may_lose_counts_in_other_types(row: Lost) -> None:
    sent, stored = ({**with_value(row, value), "type": "future_item"} for value in ("x", ...))

    assert differences(sent, stored) == [row.path.replace("[]", "[0]")]


def test_every_row_says_where_it_is_from() -> None:
    assert {row.source.split(":")[0].split(";")[0] for row in LOST} <= {
        "recorded",
        "reported",
        "documented",
        "inferred",
    }


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


@given(texts, texts)
def test_messages_are_the_same_only_if_their_text_is(one: str, other: str) -> None:
    sent, stored = user(one), stored_as(user(other))

    assert contained(sent, stored) is (one == other)
    assert (normalised_digest(sent) == normalised_digest(stored)) is (one == other)
    assert (core(sent) == core(stored)) is (one == other)


def test_all_nasty_texts_are_told_apart() -> None:
    assert len({normalised_digest(user(text)) for text in NASTY}) == len(NASTY)
    assert len({core(user(text)) for text in NASTY}) == len(NASTY)


@pytest.mark.parametrize(
    "value",
    [math.inf, -math.inf, math.nan, 10**5000, -(10**5000), 1e308, "\ud800"],
    ids=["infinity", "minus infinity", "not a number", "5001 digits", "minus 5001 digits", "large float", "surrogate"],
)
def test_no_value_that_a_server_lists_makes_comparison_fail(value: Any) -> None:
    stored = {"type": "x", "n": value, "deep": [{"arguments": value}]}
    sent = {"type": "x", "n": 1}

    assert differences(sent, stored) == ["n"]
    assert normalised_digest(stored) != normalised_digest(sent)
    assert core(stored) == core(dict(reversed(stored.items())))


def test_no_depth_that_a_server_lists_makes_comparison_fail() -> None:
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    stored = {"type": "x", "n": deep}

    assert differences({"type": "x", "n": [[1]]}, stored) == ["n[0][0]"]
    assert differences(stored, stored) == []
    assert normalised_digest(stored) != normalised_digest({"type": "x", "n": []})
    assert core(stored) == core({"type": "x"})
    assert core({"type": "function_call", "call_id": {"a": deep}}) != core({"type": "function_call"})


@pytest.mark.parametrize(
    ("ours", "altered"),
    [
        (
            user("x", phase="commentary"),
            user([{**text_part("x"), "annotations": [{"url": "u"}]}], phase="final_answer"),
        ),
        (user([text_part("x"), text_part("y")]), user([text_part("xy")])),
        (STORED_CALL, {**STORED_CALL, "id": "fc_2", "status": "incomplete", "namespace": "n"}),
        (
            {"type": "function_call_output", "call_id": "c", "output": "x"},
            {"type": "function_call_output", "call_id": "c", "output": [text_part("x")], "name": "f"},
        ),
        (
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "x"}]},
            {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "x"}], "content": []},
        ),
        (
            {"type": "file_search_call", "id": "fs_1", "queries": ["q"], "results": [{"text": "t"}]},
            {"type": "file_search_call", "id": "fs_2", "queries": ["q"], "status": "completed"},
        ),
    ],
    ids=["message", "joined parts", "call", "output", "reasoning", "a type known by its strings"],
)
def test_an_altered_copy_is_still_known_by_its_core(ours: Item, altered: Item) -> None:
    assert core(ours) == core(altered)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (user("x"), {"role": "assistant", "content": "x"}),
        (user("x"), user("y")),
        (STORED_CALL, {**STORED_CALL, "call_id": "call_2"}),
        (STORED_CALL, {**STORED_CALL, "name": "other"}),
        (STORED_CALL, {**STORED_CALL, "arguments": "{}"}),
        (STORED_OUTPUT, {**STORED_OUTPUT, "output": "x"}),
        (STORED_OUTPUT, {**STORED_OUTPUT, "type": "custom_tool_call_output"}),
        ({"type": "item_reference", "id": "msg_1"}, {"type": "item_reference", "id": "msg_2"}),
        (user([{"type": "refusal", "refusal": "x"}]), user([{"type": "refusal", "refusal": "y"}])),
        (
            {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
            {"type": "shell_call", "call_id": "c", "action": {"commands": ["rm"]}},
        ),
    ],
)
def test_different_items_have_different_cores(one: Item, other: Item) -> None:
    assert core(one) != core(other)


def deep_item(leaf: Any) -> Item:
    """An item as deep as intake takes it, with `leaf` at the bottom."""
    for _ in range(62):
        leaf = [leaf]
    return {"type": "x", "n": leaf}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"type": "x", "n": math.inf}, {"type": "x", "n": -math.inf}),
        ({"type": "x", "n": 1}, {"type": "x", "n": True}),
        ({"type": "x", "n": 1.5}, {"type": "x", "n": 1}),
        ({"type": "x", "n": "1"}, {"type": "x", "n": 1}),
        ({"type": "x", "n": 10**5000}, {"type": "x", "n": 10**5000 + 1}),
        ({"type": "item_reference", "id": "msg_1"}, {"type": "item_reference", "id": "msg_2"}),
        (deep_item("a"), deep_item("b")),
    ],
)
def test_different_items_have_different_digests(one: Item, other: Item) -> None:
    assert normalised_digest(one) != normalised_digest(other)


def test_a_number_in_another_notation_has_the_same_digest() -> None:
    assert normalised_digest({"type": "x", "n": [1, 2.5]}) == normalised_digest({"n": [1.0, 2.5], "type": "x"})


def test_recorded_items_are_all_told_apart() -> None:
    assert len({core(item) for item in STORED}) == len(STORED)
    assert len({normalised_digest(item) for item in STORED}) == len(STORED)
    assert [contained(one, other) for one in STORED for other in STORED] == [
        one is other for one in STORED for other in STORED
    ]
