"""`rewritings`: each row is what the API, or somebody else's server, does to items; and nothing else is excused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from convsessions.items import comparison
from convsessions.items.comparison import differences, normalised_digest
from convsessions.items.rewritings import ADDED, ANY_TYPE, EMPTY_UNLESS_USED, LOST, TEXT_PARTS, Lost
from convsessions.remote.calls import INCLUDE
from tests.items.listed import Item
from tests.items.recorded import (
    SENT_MESSAGE,
    STORED,
    STORED_DEVELOPER,
    STORED_MESSAGE,
    STORED_REPLY,
)

OF_ONE_TYPE = [row for row in LOST if row.kind != ANY_TYPE]
REPLY = {"role": "assistant", "content": STORED_REPLY["content"][0]["text"]}
SENT_DEVELOPER = {"role": "developer", "content": STORED_DEVELOPER["content"][0]["text"]}


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


@pytest.mark.parametrize("row", OF_ONE_TYPE, ids=lambda row: f"{row.kind}.{row.path}")
def test_a_field_that_the_api_may_lose_counts_in_other_types(row: Lost) -> None:
    sent, stored = ({**with_value(row, value), "type": "future_item"} for value in ("x", ...))

    assert differences(sent, stored) == [row.path.replace("[]", "[0]")]


@pytest.mark.parametrize(
    "source",
    [*ADDED.values(), *EMPTY_UNLESS_USED.values(), *TEXT_PARTS.values(), *(row.source for row in LOST)],
)
def test_every_row_says_where_it_is_from(source: str) -> None:
    marks = {clause.split(":")[0].strip() for clause in source.split(";")}

    assert marks <= {"recorded", "reported", "documented", "inferred"}


PROVEN: dict[tuple[str, str], tuple[Item, Item]] = {
    ("ADDED", "id"): (SENT_MESSAGE, STORED_MESSAGE),
    ("ADDED", "status"): (SENT_MESSAGE, STORED_MESSAGE),
    ("EMPTY_UNLESS_USED", "annotations"): (REPLY, STORED_REPLY),
    ("EMPTY_UNLESS_USED", "logprobs"): (REPLY, STORED_REPLY),
    ("TEXT_PARTS", "input_text"): (SENT_DEVELOPER, STORED_DEVELOPER),
    ("TEXT_PARTS", "output_text"): (REPLY, STORED_REPLY),
    ("TEXT_OR_PARTS", "message"): (SENT_DEVELOPER, STORED_DEVELOPER),
}
"""For each row that was recorded, an exchange that the real API made: what was sent, and what it listed."""


@pytest.mark.parametrize(("table", "row"), PROVEN, ids=str)
def test_a_recorded_row_is_what_a_recorded_exchange_needs(monkeypatch: Any, table: str, row: str) -> None:
    """Without it, the digests of what was sent and of what the API listed would differ."""
    monkeypatch.setattr(comparison, "lost_paths", lambda kind: frozenset())
    sent, stored = PROVEN[table, row]
    assert differences(sent, stored) == []
    assert normalised_digest(sent) == normalised_digest(stored)

    rows = getattr(comparison, table)
    monkeypatch.setattr(comparison, table, {name: rows[name] for name in rows if name != row})

    assert normalised_digest(sent) != normalised_digest(stored)


def test_every_recorded_row_is_proven() -> None:
    tables = {"ADDED": ADDED, "EMPTY_UNLESS_USED": EMPTY_UNLESS_USED, "TEXT_PARTS": TEXT_PARTS}
    recorded = {
        (table, row) for table, rows in tables.items() for row, source in rows.items() if source.startswith("recorded")
    }

    assert recorded | {("TEXT_OR_PARTS", "message")} == PROVEN.keys()


def test_what_reading_must_ask_for_is_asked_for() -> None:
    named = {name for row in LOST for name in re.findall(r"include\[\]=([a-z_.]+)", row.source)}

    assert named == set(INCLUDE)


@pytest.mark.parametrize("listed", STORED, ids=lambda item: f"{item['type']} of {item.get('role')}")
@pytest.mark.parametrize("field", ["name", "phase", "extra"])
def test_nothing_that_was_sent_may_go_missing_unless_a_row_says_so(listed: Item, field: str) -> None:
    sent = {**listed, field: "x"}
    stored = {key: value for key, value in listed.items() if key != field}

    lost = field in {row.path for row in LOST if row.kind == listed["type"]}
    assert differences(sent, stored) == ([] if lost else [field])
