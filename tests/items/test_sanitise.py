"""`sanitise`: an item loses what the API refuses, and nothing else."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given

from convsessions.items.sanitise import is_unsendable, sanitise
from tests.items.recorded import STORED, STORED_CALL
from tests.items.strategies import items

NEEDS_ID = (
    # WIRE.md, "Ids"
    "file_search_call",
    "web_search_call",
    "computer_call",
    "code_interpreter_call",
    "image_generation_call",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_call",
    "item_reference",
    "program",
    "program_output",
)


@pytest.mark.parametrize("kind", [*NEEDS_ID, "reasoning"])
def test_the_id_is_kept_where_the_api_asks_for_it(kind: str) -> None:
    assert sanitise({"type": kind, "id": "x_1"}) == {"type": kind, "id": "x_1"}


@pytest.mark.parametrize(
    "kind", ["message", "function_call", "function_call_output", "shell_call", "compaction", "new"]
)
def test_the_id_goes_where_it_is_not_needed(kind: str) -> None:
    assert sanitise({"type": kind, "id": "x_1"}) == {"type": kind}


@pytest.mark.parametrize("kind", ["message", "reasoning", "mcp_call"])
@pytest.mark.parametrize("placeholder", ["__fake_id__", ""])
def test_a_placeholder_id_goes_whatever_the_type(kind: str, placeholder: str) -> None:
    assert sanitise({"type": kind, "id": placeholder}) == {"type": kind}


def test_the_id_of_a_message_without_a_type_goes() -> None:
    assert sanitise({"id": "msg_1", "role": "user", "content": "x"}) == {"role": "user", "content": "x"}


@pytest.mark.parametrize("field", ["provider_data", "created_by", "_agents_tool_description", "_agents_tool_title"])
def test_private_fields_go_from_items_and_parts(field: str) -> None:
    part = {"type": "input_text", "text": "x"}

    clean = sanitise({"role": "user", "content": [{**part, field: {"a": 1}}], field: {"a": 1}})

    assert clean == {"role": "user", "content": [part]}


def test_null_optionals_go_from_items_and_parts() -> None:
    item = {"role": "user", "content": [{"type": "input_image", "file_id": None, "image_url": "u"}], "status": None}

    assert sanitise(item) == {"role": "user", "content": [{"type": "input_image", "image_url": "u"}]}


def test_null_optionals_go_from_a_screenshot() -> None:
    item = {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "file_id": None}}

    assert sanitise(item) == {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}}


def test_nulls_that_must_be_present_stay() -> None:
    item = {"type": "code_interpreter_call", "id": "ci_1", "container_id": "c", "code": None, "outputs": None}

    assert sanitise({**item, "status": None}) == item


def test_nulls_in_free_form_json_stay() -> None:
    item = {"type": "tool_search_call", "arguments": {"query": None, "provider_data": None}}

    assert sanitise(item) == item


@given(items)
def test_the_given_item_is_not_changed(item: dict[str, Any]) -> None:
    before = copy.deepcopy(item)

    sanitise(item)

    assert json.dumps(item) == json.dumps(before)


@given(items)
def test_sanitising_twice_is_sanitising_once(item: dict[str, Any]) -> None:
    assert json.dumps(sanitise(sanitise(item))) == json.dumps(sanitise(item))


@given(items)
def test_what_stays_is_what_was_there_in_the_same_order(item: dict[str, Any]) -> None:
    clean = sanitise(item)

    assert list(clean) == [key for key in item if key in clean]
    assert {key for key in item if key not in clean} <= {"id"} | {key for key, value in item.items() if value is None}
    parts = ("content", "output", "outputs", "summary")
    assert all(json.dumps(clean[key]) == json.dumps(item[key]) for key in clean if key not in parts)


@pytest.mark.parametrize("stored", STORED, ids=lambda stored: f"{stored['type']} of {stored.get('role')}")
def test_an_item_as_the_api_lists_it_can_be_sent_again(stored: dict[str, Any]) -> None:
    assert sanitise(stored) == {key: value for key, value in stored.items() if key != "id"}


@pytest.mark.parametrize(
    ("item", "unsendable"),
    [
        ({"type": "reasoning", "summary": []}, True),
        ({"type": "reasoning", "summary": [], "id": "", "encrypted_content": ""}, True),
        ({"type": "reasoning", "summary": [], "id": "rs_1"}, False),
        ({"type": "reasoning", "summary": [], "encrypted_content": "e"}, False),
        (STORED_CALL, False),
    ],
)
def test_only_reasoning_without_id_and_encrypted_content_is_unsendable(item: dict[str, Any], unsendable: bool) -> None:
    assert is_unsendable(item) is unsendable
