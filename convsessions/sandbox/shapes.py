"""What the API takes as an item: fields by type, from the client's parameter types (documented).

Prefixes of message, function_call, function_call_output and reasoning ids are recorded (both function types have
``fc``); those of the other types are the usual ones of the Responses API (inferred).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """The fields of one item type, `type` and `id` apart. `nullable` ones are required, but may be null."""

    prefix: str
    required: frozenset[str]
    optional: frozenset[str]
    nullable: frozenset[str] = frozenset()
    needs_id: bool = False

    @property
    def known(self) -> frozenset[str]:
        return self.required | self.optional | self.nullable | {"type", "id"}


def _shape(prefix: str, required: str, optional: str = "", *, nullable: str = "", needs_id: bool = False) -> Shape:
    required_names, optional_names, nullable_names = (frozenset(n.split()) for n in (required, optional, nullable))
    return Shape(prefix, required_names, optional_names, nullable_names, needs_id)


ITEMS: dict[str, Shape] = {
    "message": _shape("msg", "role content", "status phase"),
    "function_call": _shape("fc", "call_id name arguments", "status namespace caller async"),
    "function_call_output": _shape("fc", "output", "call_id status caller name namespace"),
    "reasoning": _shape("rs", "summary", "content encrypted_content status"),
    "file_search_call": _shape("fs", "queries status", "results", needs_id=True),
    "web_search_call": _shape("ws", "action status", needs_id=True),
    "computer_call": _shape("cu", "call_id status pending_safety_checks", "action actions", needs_id=True),
    "computer_call_output": _shape("cuo", "call_id output", "acknowledged_safety_checks status"),
    "code_interpreter_call": _shape("ci", "container_id status", nullable="code outputs", needs_id=True),
    "image_generation_call": _shape(
        "ig",
        "status",
        "action background error output_format quality revised_prompt size svg_usage",
        nullable="result",
        needs_id=True,
    ),
    "local_shell_call": _shape("lsh", "action call_id status", needs_id=True),
    "local_shell_call_output": _shape("lsho", "output", "status", needs_id=True),
    "shell_call": _shape("sh", "action call_id", "caller environment status"),
    "shell_call_output": _shape("sho", "call_id output", "caller max_output_length status"),
    "apply_patch_call": _shape("apc", "call_id operation status", "caller"),
    "apply_patch_call_output": _shape("apco", "call_id status", "caller output"),
    "mcp_list_tools": _shape("mcpl", "server_label tools", "error", needs_id=True),
    "mcp_approval_request": _shape("mcpr", "arguments name server_label", needs_id=True),
    "mcp_approval_response": _shape("mcpa", "approval_request_id approve", "reason"),
    "mcp_call": _shape("mcp", "arguments name server_label", "approval_request_id error output status", needs_id=True),
    "custom_tool_call": _shape("ctc", "call_id input name", "caller namespace async"),
    "custom_tool_call_output": _shape("ctco", "call_id output", "caller"),
    "tool_search_call": _shape("tsc", "arguments", "call_id execution status"),
    "tool_search_output": _shape("tso", "tools", "call_id execution status"),
    "additional_tools": _shape("at", "role tools"),
    "configuration_update": _shape("cu", "", "reasoning text"),
    "compaction": _shape("cmp", "encrypted_content"),
    "compaction_trigger": _shape("ct", ""),
    "program": _shape("prog", "call_id code fingerprint", needs_id=True),
    "program_output": _shape("progo", "call_id result status", needs_id=True),
    "item_reference": _shape("", "", needs_id=True),
}

WITHOUT_DEFAULT_STATUS = frozenset({"reasoning"})
"""Recorded: a message, function call or output gets ``status: completed``; reasoning items come without (inferred)."""

INPUT_PARTS: dict[str, Shape] = {
    "input_text": _shape("", "text", "prompt_cache_breakpoint"),
    "input_image": _shape("", "", "detail file_id image_url prompt_cache_breakpoint"),
    "input_file": _shape("", "", "detail file_data file_id file_url filename prompt_cache_breakpoint"),
}
OUTPUT_PARTS: dict[str, Shape] = {
    "output_text": _shape("", "text", "annotations logprobs"),
    "refusal": _shape("", "refusal"),
}
PARTS_OF_ROLE: dict[str, dict[str, Shape]] = {
    "user": INPUT_PARTS,
    "system": INPUT_PARTS,
    "developer": INPUT_PARTS,
    "assistant": OUTPUT_PARTS,
}
"""Reported: an ``input_text`` part in an assistant message is refused. The reverse is inferred."""
