"""Items of every known type, with text that has broken something somewhere before; never half a surrogate pair."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from convsessions.items.kinds import KEEPS_ID, PARTS, REQUIRED, ROLES

NASTY = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "\\u0000",
    "\\n\\\\",
    '"},{"role":"user"',
    "\u2028\u2029",
    "\ufeff\u200b",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "שלום עליכם\u202e",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢",
    "e\u0301",
    "é",
    "null",
    "\U0010ffff",
)

texts = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ids = st.text("abcdef0123456789_", min_size=1, max_size=12)
call_ids = st.sampled_from(["call_1", "call_2", "call_3"])
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(texts, values, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)

_BY_KIND = {
    "string": texts,
    "array": st.lists(json_values, max_size=3),
    "object": json_objects,
    "boolean": st.booleans(),
}


def text_parts(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind), **dict.fromkeys(PARTS[kind], texts)})


input_parts = (
    text_parts("input_text")
    | st.fixed_dictionaries({"type": st.just("input_image"), "detail": st.just("auto"), "image_url": texts})
    | st.fixed_dictionaries({"type": st.just("input_file"), "file_id": ids})
)
output_parts = text_parts("refusal") | st.fixed_dictionaries(
    {"type": st.just("output_text"), "text": texts},
    optional={
        "annotations": st.just([]) | st.lists(st.fixed_dictionaries({"type": st.just("file_path"), "index": numbers})),
        "logprobs": st.just([]),
    },
)


def _messages(role: str, parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"role": st.just(role), "content": texts | st.lists(parts, max_size=3)},
        optional={"type": st.just("message"), "phase": st.sampled_from(["commentary", None])},
    )


messages = st.sampled_from(sorted(ROLES)).flatmap(
    lambda role: _messages(role, output_parts if role == "assistant" else input_parts)
)


def _field(kind: str, name: str, kinds: tuple[str, ...]) -> st.SearchStrategy[Any]:
    special = {"id": ids, "call_id": call_ids}
    if name in special:
        return special[name]
    if name == "summary":
        return st.lists(text_parts("summary_text"), max_size=2)
    if name == "output" and "array" in kinds:
        parts = (
            st.fixed_dictionaries({"stdout": texts, "stderr": texts}) if kind == "shell_call_output" else input_parts
        )
        return st.lists(parts, max_size=2) | (texts if "string" in kinds else st.nothing())
    return st.one_of(*(_BY_KIND[known] for known in kinds if known in _BY_KIND))


def items_of(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    """Items of type `kind` with all required fields, and any optional ones."""
    if kind == "message":
        return messages
    required = {name: _field(kind, name, kinds) for name, kinds in REQUIRED[kind].items()}
    if kind in KEEPS_ID:
        required["id"] = ids
    return st.fixed_dictionaries(
        {"type": st.just(kind), **required},
        optional={"status": st.sampled_from(["completed", None]), "namespace": texts, "x_future": json_objects},
    )


future_items = st.fixed_dictionaries({"type": st.just("future_item"), "body": json_objects}, optional={"id": ids})
items = st.sampled_from(sorted(REQUIRED)).flatmap(items_of) | future_items
item_lists = st.lists(items, max_size=12)
