"""What is known about the types of items: one table each for fields, roles and parts.

Sources are the marks of WIRE.md and the `openai` client's own types (3.57, ``types/responses/*_param.py``), which are
generated from OpenAI's API document; a test compares the two. Types that only the installed client knows are added to
these tables as a `Vocabulary`, and what is to become of a type that neither knows is a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ANY = ("string", "array", "object", "number", "boolean", "null")
"""The kinds of JSON values."""

Fields = Mapping[str, tuple[str, ...]]
"""The fields that a type requires, with the kinds that each may have."""

MESSAGE = "message"
REASONING = "reasoning"
ITEM_REFERENCE = "item_reference"

ROLES = frozenset({"user", "assistant", "system", "developer"})
"""Roles that a message may be sent with. Other roles exist, but only on reading."""

REQUIRED: dict[str, Fields] = {
    MESSAGE: {"role": ("string",), "content": ("string", "array")},
    REASONING: {"summary": ("array",)},
    ITEM_REFERENCE: {"id": ("string",)},
    "function_call": {"call_id": ("string",), "name": ("string",), "arguments": ("string",)},
    "function_call_output": {"output": ("string", "array")},
    "custom_tool_call": {"call_id": ("string",), "name": ("string",), "input": ("string",)},
    "custom_tool_call_output": {"call_id": ("string",), "output": ("string", "array")},
    "file_search_call": {"id": ("string",), "queries": ("array",)},
    "web_search_call": {"id": ("string",), "action": ("object",)},
    "computer_call": {"id": ("string",), "call_id": ("string",)},
    "computer_call_output": {"call_id": ("string",), "output": ("object",)},
    "code_interpreter_call": {"id": ("string",), "container_id": ("string",)},
    "image_generation_call": {"id": ("string",)},
    "local_shell_call": {"id": ("string",), "call_id": ("string",), "action": ("object",)},
    "local_shell_call_output": {"id": ("string",), "output": ("string",)},
    "shell_call": {"call_id": ("string",), "action": ("object",)},
    "shell_call_output": {"call_id": ("string",), "output": ("array",)},
    "apply_patch_call": {"call_id": ("string",), "operation": ("object",)},
    "apply_patch_call_output": {"call_id": ("string",)},
    "mcp_list_tools": {"id": ("string",), "server_label": ("string",), "tools": ("array",)},
    "mcp_approval_request": {
        "id": ("string",),
        "server_label": ("string",),
        "name": ("string",),
        "arguments": ("string",),
    },
    "mcp_approval_response": {"approval_request_id": ("string",), "approve": ("boolean",)},
    "mcp_call": {"id": ("string",), "server_label": ("string",), "name": ("string",), "arguments": ("string",)},
    "tool_search_call": {"arguments": ("string", "array", "object", "number", "boolean")},
    "tool_search_output": {"tools": ("array",)},
    "additional_tools": {"role": ("string",), "tools": ("array",)},
    "configuration_update": {},
    "compaction": {"encrypted_content": ("string",)},
    "compaction_trigger": {},
    "program": {"id": ("string",), "call_id": ("string",), "code": ("string",), "fingerprint": ("string",)},
    "program_output": {"id": ("string",), "call_id": ("string",), "result": ("string",)},
}
"""Fields without which the API refuses an item of the type, with the JSON kinds that each may have (D).

Left out on purpose: `status`, which the client's types require of some items but nobody has reported as refused; the
`id` of reasoning, which does without if it has its encrypted content (O); a computer call's safety checks, which
older models' items lack; and fields that may be null, see `NULLABLE`.
"""

UNREQUIRED = frozenset({"status"})
"""Fields that the client's types require, and that are not asked for."""

NULLABLE: dict[str, frozenset[str]] = {
    "code_interpreter_call": frozenset({"code", "outputs"}),
    "image_generation_call": frozenset({"result"}),
}
"""Fields that must be present and may be null (D): the only nulls that are not the same as leaving the field out."""

KEEPS_ID = frozenset(kind for kind, fields in REQUIRED.items() if "id" in fields) | {REASONING}
"""Types whose `id` is sent (D, O). Reasoning does not need one, but without it the API asks for encrypted content."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The types that are known: as `REQUIRED`, `NULLABLE` and `KEEPS_ID` tell it of those in these tables."""

    required: Mapping[str, Fields]
    nullable: Mapping[str, frozenset[str]]
    keeps_id: frozenset[str]

    def __contains__(self, kind: str) -> bool:
        return kind in self.required


TABLE = Vocabulary(REQUIRED, NULLABLE, KEEPS_ID)
"""What these tables know."""


def with_types(more: Mapping[str, Fields]) -> Vocabulary:
    """`TABLE`, and the types of `more` that it lacks, with what they require."""
    added = {kind: fields for kind, fields in more.items() if kind not in REQUIRED}
    required = {
        kind: {name: kinds for name, kinds in fields.items() if name not in UNREQUIRED and "null" not in kinds}
        for kind, fields in added.items()
    }
    nullable = {
        kind: frozenset(name for name, kinds in fields.items() if "null" in kinds) for kind, fields in added.items()
    }
    needing_id = frozenset(kind for kind, fields in added.items() if "id" in fields)
    return Vocabulary({**REQUIRED, **required}, {**NULLABLE, **nullable}, KEEPS_ID | needing_id)


PARTS: dict[str, Fields] = {
    "input_text": {"text": ("string",)},
    "output_text": {"text": ("string",)},
    "text": {"text": ("string",)},
    "summary_text": {"text": ("string",)},
    "reasoning_text": {"text": ("string",)},
    "refusal": {"refusal": ("string",)},
    "input_image": {},
    "input_file": {},
}
"""Types of content parts, with their required fields as in `REQUIRED`."""

REFUSED_PARTS = frozenset({("assistant", "input_text")})
"""Pairs of a message's role and a part's type that the API answers with 400 (O)."""

PART_FIELDS: dict[str, tuple[str, ...]] = {
    MESSAGE: ("content",),
    REASONING: ("summary", "content"),
    "function_call_output": ("output",),
    "custom_tool_call_output": ("output",),
    "computer_call_output": ("output",),
    "shell_call_output": ("output",),
    "code_interpreter_call": ("outputs",),
}
"""Fields that hold content parts: a list of them, or for a computer's screenshot a single one."""

UNTYPED_PARTS = frozenset({"shell_call_output"})
"""Types whose parts carry no `type` of their own (D)."""

INCLUDABLE = (
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "file_search_call.results",
    "web_search_call.action.sources",
    "web_search_call.results",
    "code_interpreter_call.outputs",
)
"""What the API leaves out of the items that it lists unless it is asked for (D, `include`)."""

FREE_FORM = frozenset({"arguments", "attributes", "env", "input_schema", "parameters", "schema"})
"""Names of fields below which the keys belong to the caller: the API adds nothing there, and paths do not name them."""


def kind_of(item: Mapping[str, Any]) -> str:
    """The type of `item`: its `type`, or what the API takes an item without one for; "" if there is no telling.

    A mapping with a role or content is a message (R); one with nothing but an id is a reference (D).
    """
    given = item.get("type")
    if isinstance(given, str):
        return given
    if given is not None:
        return ""
    if "role" in item or "content" in item:
        return MESSAGE
    return ITEM_REFERENCE if [key for key, value in item.items() if value is not None] == ["id"] else ""
