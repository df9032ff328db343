"""`comparison`: what two copies of an item share, and different ones do not."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given

from convsessions.items.comparison import contained, core, differences, normalised_digest
from tests.items.listed import Item, stored_as, text_part, user
from tests.items.recorded import (
    STORED,
    STORED_CALL,
    STORED_OUTPUT,
)
from tests.items.strategies import NASTY, texts


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
