"""`chunks`: nothing is lost or moved, every request is small enough, and what belongs together stays together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convsessions.items.chunking import Chunk, chunks
from convsessions.items.intake import PreparedItem

NO_LIMIT = 10**9

shapes = st.sampled_from(
    [
        ("message", ""),
        ("reasoning", ""),
        ("web_search_call", ""),
        ("future_item", "a"),
        *((kind, call_id) for kind in ("function_call", "function_call_output") for call_id in "abcd"),
        ("shell_call", "a"),
        ("shell_call_output", "a"),
    ]
)
prepared = st.builds(
    lambda shape, padding: PreparedItem(text=json.dumps("x" * padding), type=shape[0], call_id=shape[1]),
    shapes,
    st.integers(0, 20),
)
appends = st.lists(prepared, max_size=30)
item_limits = st.integers(1, 8)
byte_limits = st.integers(10, 120) | st.just(NO_LIMIT)


def item(kind: str, call_id: str = "", text: str = "0") -> PreparedItem:
    return PreparedItem(text=text, type=kind, call_id=call_id)


MESSAGE, THOUGHT = item("message"), item("reasoning")


def call(call_id: str) -> PreparedItem:
    return item("function_call", call_id)


def output(call_id: str) -> PreparedItem:
    return item("function_call_output", call_id)


def counts(items: list[PreparedItem], *, max_items: int, max_bytes: int = NO_LIMIT) -> list[int]:
    return [chunk.item_count for chunk in chunks(items, max_items=max_items, max_bytes=max_bytes)]


def bonds(items: list[PreparedItem]) -> Iterator[tuple[int, int]]:
    """Positions of every two items that belong together, by the rule as DESIGN.md words it."""
    for first, one in enumerate(items):
        if one.type == "reasoning" and first + 1 < len(items):
            yield first, first + 1
        if not one.call_id or one.type.endswith("_output"):
            continue
        for second in range(first + 1, len(items)):
            other = items[second]
            if other.call_id == one.call_id and other.type.endswith("_output"):
                yield first, second
                break
            if not other.call_id and other.type != "reasoning":
                break


def groups(items: list[PreparedItem]) -> Iterator[tuple[int, int]]:
    """Ranges of positions that are held together by bonds, the end excluded."""
    held = {position for first, second in bonds(items) for position in range(first, second)}
    start = 0
    for position in range(len(items)):
        if position not in held:
            yield start, position + 1
            start = position + 1


def size(items: list[PreparedItem]) -> int:
    return len(f"[{','.join(item.text for item in items)}]")


@given(appends, item_limits, byte_limits)
def test_the_chunks_are_the_items_in_order_and_complete(items: list[PreparedItem], most: int, limit: int) -> None:
    cut = list(chunks(items, max_items=most, max_bytes=limit))

    texts = [json.dumps(element) for chunk in cut for element in json.loads(chunk.payload)]
    assert texts == [item.text for item in items]
    ends = [chunk.first_item + chunk.item_count for chunk in cut]
    assert [chunk.first_item for chunk in cut] == [0, *ends][: len(cut)]
    assert ends[-1:] == [len(items)][: len(cut)]


@given(appends, item_limits, byte_limits)
def test_every_chunk_is_within_the_limits_unless_it_is_a_single_item(
    items: list[PreparedItem], most: int, limit: int
) -> None:
    for chunk in chunks(items, max_items=most, max_bytes=limit):
        assert 1 <= chunk.item_count <= most
        assert len(chunk.payload) <= limit or chunk.item_count == 1


@given(appends, item_limits, byte_limits)
def test_no_group_that_fits_into_a_chunk_is_split(items: list[PreparedItem], most: int, limit: int) -> None:
    begins = {chunk.first_item for chunk in chunks(items, max_items=most, max_bytes=limit)}

    for start, end in groups(items):
        if end - start <= most and size(items[start:end]) <= limit:
            assert begins.isdisjoint(range(start + 1, end))


@given(appends, item_limits, byte_limits)
def test_a_chunk_ends_only_where_the_next_group_does_not_fit(items: list[PreparedItem], most: int, limit: int) -> None:
    cut = list(chunks(items, max_items=most, max_bytes=limit))

    ends = dict(groups(items))
    for chunk, following in pairwise(cut):
        if following.first_item in ends:  # not in the middle of a group that fits nowhere
            together = items[chunk.first_item : ends[following.first_item]]
            assert len(together) > most or size(together) > limit


def test_items_without_bonds_fill_the_chunks() -> None:
    assert counts([MESSAGE] * 45, max_items=20) == [20, 20, 5]


def test_a_chunk_holds_the_texts_as_they_are() -> None:
    items = [item("message", text='{"role": "user"}'), item("message", text="1.0")]

    assert list(chunks(items, max_items=20, max_bytes=NO_LIMIT)) == [
        Chunk(first_item=0, item_count=2, payload='[{"role": "user"},1.0]')
    ]


def test_no_items_need_no_request() -> None:
    assert list(chunks([], max_items=20, max_bytes=NO_LIMIT)) == []


def test_a_chunk_may_be_as_large_as_the_limit_and_no_larger() -> None:
    items = [item("message", text="1234"), item("message", text="5678")]

    assert counts(items, max_items=20, max_bytes=len("[1234,5678]")) == [2]
    assert counts(items, max_items=20, max_bytes=len("[1234,5678]") - 1) == [1, 1]


def test_an_item_larger_than_the_limit_is_sent_alone() -> None:
    assert counts([MESSAGE, item("message", text="9" * 100), MESSAGE, MESSAGE], max_items=20, max_bytes=50) == [1, 1, 2]


@pytest.mark.parametrize(
    ("group", "why"),
    [
        ([call("a"), output("a")], "a call and its output"),
        ([call("a"), call("b"), output("a"), output("b")], "parallel calls, then their outputs"),
        ([call("a"), call("b"), output("b"), output("a")], "outputs in the other order"),
        ([THOUGHT, MESSAGE], "reasoning and its message"),
        ([THOUGHT, THOUGHT, MESSAGE], "two reasoning items and their message"),
        ([THOUGHT, call("a"), output("a")], "reasoning, call and output"),
        ([call("a"), THOUGHT, output("a")], "reasoning between call and output"),
        ([THOUGHT, call("a"), THOUGHT, call("b"), output("a"), output("b")], "reasoning between parallel calls"),
        ([item("tool_search_call", "t"), item("tool_search_output", "t")], "a search for tools"),
        ([item("program", "p"), item("program_output", "p")], "a program and its output"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_belongs_together_goes_into_the_next_chunk_together(group: list[PreparedItem], why: str) -> None:
    for before in range(21 - len(group), 20):
        assert counts([*[MESSAGE] * before, *group, MESSAGE], max_items=20) == [before, len(group) + 1], why


@pytest.mark.parametrize(
    ("neighbours", "why"),
    [
        ([call("a"), output("b")], "an output of another call"),
        ([call("a"), MESSAGE, output("a")], "a message in between"),
        ([output("a"), call("a")], "an output before its call"),
        ([output("a"), output("a")], "two outputs"),
        ([call("a"), call("b")], "two calls without outputs"),
        ([item("message"), item("function_call_output")], "an output without a call_id"),
        ([item("web_search_call"), item("function_call_output")], "no call_id on either side"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_belong_together_fills_the_chunk(neighbours: list[PreparedItem], why: str) -> None:
    assert counts([*[MESSAGE] * 19, *neighbours], max_items=20) == [20, len(neighbours) - 1], why


def test_a_call_without_output_does_not_hold_back_the_calls_after_it() -> None:
    assert counts([*[MESSAGE] * 18, call("lost"), call("b"), output("b")], max_items=20) == [19, 2]


def test_a_group_too_large_for_a_chunk_is_split_but_not_between_reasoning_and_its_call() -> None:
    parallel = [THOUGHT, *map(call, "abc"), *map(output, "abc")]

    assert counts([*[MESSAGE] * 4, *parallel], max_items=5) == [4, 2, 5]


def test_reasoning_at_the_end_has_nothing_to_wait_for() -> None:
    assert counts([*[MESSAGE] * 19, THOUGHT], max_items=20) == [20]
    assert counts([*[MESSAGE] * 19, THOUGHT, THOUGHT], max_items=20) == [19, 2]


def test_items_are_read_only_as_far_as_the_next_chunk_needs() -> None:
    read: list[int] = []

    def endless() -> Iterator[PreparedItem]:
        for number in count():
            read.append(number)
            yield call(str(number))

    cut = chunks(endless(), max_items=20, max_bytes=NO_LIMIT)
    next(cut)

    assert len(read) == 41, "the chunk, and a window of one item more than a chunk"


def test_large_items_are_not_read_ahead() -> None:
    read: list[int] = []

    def endless() -> Iterator[PreparedItem]:
        for number in count():
            read.append(number)
            yield item("message", text="9" * 1000)

    next(chunks(endless(), max_items=20, max_bytes=1500))

    assert len(read) == 3
