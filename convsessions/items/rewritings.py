"""How an item read back may differ from the item sent and still be the same: as data, each row with its source.

Sources: *recorded* traffic of the real endpoint, *reported* by third parties, *documented* by OpenAI (its API document
or client types), *inferred* where none of these says it. WIRE.md, "How items come back", has the details.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

ADDED = {
    "id": "recorded; reported: an id that was sent is replaced where the API does not know it",
    "status": "recorded",
}
"""Top-level fields that the API adds to every item."""

EMPTY_UNLESS_USED = {"annotations": "recorded", "logprobs": "recorded"}
"""Fields that the API adds to output text as empty lists: an empty one is the same as none."""

TEXT_PARTS = {
    "input_text": "recorded: string content comes back as such a part",
    "output_text": "recorded: of the assistant; reported: agentic-api and smg make input_text of it and back",
    "text": "documented: a third spelling in the client's types for reading",
}
"""Part types that stand for one another."""

TEXT_OR_PARTS = {"message": "content", "function_call_output": "output", "custom_tool_call_output": "output"}
"""By type, the field in which a string stands for one text part (content: recorded; output: documented as either)."""

ANY_TYPE = "*"


@dataclass(frozen=True, slots=True)
class Lost:
    """A field that may be absent, null or empty when read back, whatever was sent.

    path: in an item of type `kind`, with ``[]`` for any index. A value that is there must still be what was sent.
    """

    kind: str
    path: str
    source: str


LOST = (
    Lost(ANY_TYPE, "status", "reported: agentic-api gives a function_call none"),
    Lost("file_search_call", "results", "reported; documented: include[]=file_search_call.results"),
    Lost("code_interpreter_call", "outputs", "reported; documented: include[]=code_interpreter_call.outputs"),
    Lost("shell_call", "environment", "reported"),
    Lost("message", "phase", "reported"),
    Lost("message", "content[].image_url", "documented: include[]=message.input_image.image_url"),
    Lost("message", "content[].logprobs", "documented: include[]=message.output_text.logprobs"),
    Lost("computer_call_output", "output.image_url", "documented: include[]=computer_call_output.output.image_url"),
    Lost("reasoning", "encrypted_content", "documented: include[]=reasoning.encrypted_content"),
    Lost("web_search_call", "action.sources", "documented: include[]=web_search_call.action.sources"),
    Lost("web_search_call", "results", "documented: include[]=web_search_call.results"),
    Lost("function_call_output", "output[].image_url", "inferred: images need include[], and none names this one"),
    Lost("custom_tool_call_output", "output[].image_url", "inferred: images need include[], and none names this one"),
)


def _by_kind() -> dict[str, frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in LOST:
        found[row.kind].add(row.path)
    return {kind: frozenset(paths) for kind, paths in found.items()}


_LOST_PATHS = _by_kind()


def lost_paths(kind: str) -> frozenset[str]:
    """The paths in `LOST` for items of type `kind`."""
    return _LOST_PATHS.get(kind, frozenset()) | _LOST_PATHS[ANY_TYPE]


IDENTITY: dict[str, tuple[str, ...]] = {
    "message": ("role", "content"),
    "reasoning": ("summary", "content"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call": ("call_id", "name", "input"),
    "custom_tool_call_output": ("call_id", "output"),
    "item_reference": ("id",),
}
"""The fields that tell which item one is, whatever else was rewritten; of content parts only the text counts.

Types that do not stand here are known by their call_id and all their strings.
"""
