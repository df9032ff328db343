"""Types beside messages and calls, numbers, and what is refused before it is recorded."""

from __future__ import annotations

from tests.items.hostile import nested

from .rows import Arrives, Refused, RefusedByTheApi, done

TOOL = {"type": "function", "name": "f", "strict": True, "parameters": {"type": "object", "default": None}}


def searched(arguments: object) -> dict[str, object]:
    return {"type": "tool_search_call", "arguments": arguments}


def finds(name: str, arguments: object) -> Arrives:
    return Arrives(name, searched(arguments), stored=done(searched(arguments)))


OTHERS = [
    finds("tool_search_call", {"query": "x", "limit": None}),
    finds("an integer of 54 bits", {"n": 2**53 + 1}),
    finds("an integer of 200 bits", {"n": -(2**200)}),
    finds("an integer of 4000 digits", {"n": 10**4000 - 1}),
    finds("numbers in several notations", {"n": [1, 1.0, -0.0, 0.1, 1e22, 5e-324, 1.7976931348623157e308]}),
    finds("keys in an order of their own", {"b": 1, "a": {"d": 2, "c": 3}, "": 4, "\x00": 5, "é": 6}),
    finds("a string", "text"),
    finds("a number", 7),
    finds("a boolean", False),
    finds("an empty list", []),
    Arrives(
        "tool_search_output",
        {"type": "tool_search_output", "call_id": "call_1", "tools": [TOOL]},
        stored=done({"type": "tool_search_output", "call_id": "call_1", "tools": [TOOL]}),
    ),
    Arrives("additional_tools", {"type": "additional_tools", "role": "developer", "tools": [TOOL]}),
    Arrives("configuration_update", {"type": "configuration_update", "reasoning": {"effort": "low"}}),
    Arrives("compaction", {"type": "compaction", "encrypted_content": "gAAA="}),
    Arrives(
        "compaction with an id",
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA="},
        sent={"type": "compaction", "encrypted_content": "gAAA="},
    ),
    Arrives("compaction_trigger", {"type": "compaction_trigger"}),
    Arrives("program", {"type": "program", "id": "prog_1", "call_id": "call_1", "code": "1", "fingerprint": "\u202e"}),
    Arrives(
        "program_output",
        {"type": "program_output", "id": "progo_1", "call_id": "call_1", "result": "1", "status": "completed"},
    ),
    RefusedByTheApi(
        "a type of the future, which this server does not know",
        {"type": "telepathy_call", "waves": [1]},
        "items[0].type",
        "invalid_value",
    ),
    Refused("half a surrogate pair", {"role": "user", "content": "\ud83d"}, "items[0].content", "surrogate"),
    Refused("half a pair in a key", searched({"\udc00": 1}), "items[0].arguments", "surrogate"),
    Refused("not a number", searched({"n": float("nan")}), "items[0].arguments", "not_finite"),
    Refused("an infinity", {"type": "x", "n": [float("inf")]}, "items[0].n[0]", "not_finite"),
    Refused("bytes", {"role": "user", "content": b"x"}, "items[0].content", "not_json"),
    Refused("an integer of 4301 digits", searched({"n": 10**4300}), "items[0].arguments", "too_large"),
    Refused("65 levels", searched(nested(64)), "items[0].arguments", "too_deep"),
    Refused("a role that nobody has", {"role": "tool", "content": "x"}, "items[0].role", "unknown_role"),
    Refused("a message without content", {"role": "user"}, "items[0].content", "missing"),
    Refused("null content", {"role": "user", "content": None}, "items[0].content", "missing"),
    Refused(
        "input text from the assistant",
        {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]},
        "items[0].content[0]",
        "invalid_part",
    ),
    Refused(
        "a text part without text",
        {"role": "user", "content": [{"type": "input_text", "text": None}]},
        "items[0].content[0].text",
        "missing",
    ),
    Refused(
        "a call without its call_id",
        {"type": "function_call", "name": "f", "arguments": "{}", "call_id": None},
        "items[0].call_id",
        "missing",
    ),
    Refused(
        "arguments that are no text",
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": {}},
        "items[0].arguments",
        "invalid_type",
    ),
    Refused(
        "a type that needs its id, without it",
        {"type": "mcp_list_tools", "id": "__fake_id__", "server_label": "s", "tools": []},
        "items[0].id",
        "missing",
    ),
    Refused("an item without a type", {"name": "f"}, "items[0].type", "missing"),
    Refused("an item that is text", "hello", "items[0]", "not_an_object"),
]
