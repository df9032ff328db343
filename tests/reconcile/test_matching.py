"""What a history says about a chunk: the table of `matching`, in short notation (see `notation`)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from convsessions.reconcile.matching import MAX_IDS_KEPT, Finding, match
from convsessions.states import Verdict

from .notation import sent, stored

SAVED, ABSENT, PARTIAL = Verdict.SAVED, Verdict.ABSENT, Verdict.PARTIAL
DUPLICATED, CONTESTED = Verdict.DUPLICATED, Verdict.CONTESTED

# sent, history after the anchor, bound ids, rivals -> verdict, runs, parts, foreign
TABLE = {
    "nothing at all": ("AB", "", "", [], ABSENT, [], "", ""),
    "the run and nothing else": ("AB", "AB", "", [], SAVED, ["01"], "", ""),
    "foreign before": ("AB", "xyAB", "", [], SAVED, ["23"], "", "01"),
    "foreign after": ("AB", "ABxy", "", [], SAVED, ["01"], "", "23"),
    "foreign around": ("AB", "xABy", "", [], SAVED, ["12"], "", "03"),
    "foreign within": ("AB", "AxB", "", [], PARTIAL, [], "02", "1"),
    "only foreign": ("AB", "xyz", "", [], ABSENT, [], "", "012"),
    "the first item only": ("AB", "A", "", [], PARTIAL, [], "0", ""),
    "the last item only": ("AB", "xB", "", [], PARTIAL, [], "1", "0"),
    "the wrong order": ("AB", "BA", "", [], PARTIAL, [], "01", ""),
    "the run twice, side by side": ("AB", "ABAB", "", [], DUPLICATED, ["01", "23"], "", ""),
    "the run twice, foreign between": ("AB", "ABxAB", "", [], DUPLICATED, ["01", "34"], "", "2"),
    "the run three times": ("A", "AAA", "", [], DUPLICATED, ["0", "1", "2"], "", ""),
    "the run and a part of it": ("AB", "ABA", "", [], SAVED, ["01"], "", "2"),
    "a part of it and the run": ("AB", "BAB", "", [], SAVED, ["12"], "", "0"),
    "two intended equal items": ("AA", "AA", "", [], SAVED, ["01"], "", ""),
    "two intended equal items, one stored": ("AA", "A", "", [], PARTIAL, [], "0", ""),
    "two intended equal items, three stored: runs overlap": ("AA", "AAA", "", [], CONTESTED, ["01"], "", ""),
    "two intended equal items, twice": ("AA", "AAAA", "", [], CONTESTED, ["01", "23"], "", ""),
    "two intended equal items, twice, foreign between": ("AA", "AAxAA", "", [], DUPLICATED, ["01", "34"], "", "2"),
    "runs that overlap at their ends": ("ABA", "ABABA", "", [], CONTESTED, ["012"], "", ""),
    "earlier equal content that is bound": ("AB", "ABAB", "01", [], SAVED, ["23"], "", ""),
    "only earlier equal content that is bound": ("AB", "ABx", "01", [], ABSENT, [], "", "2"),
    "a bound item is no part of it": ("AB", "xA", "1", [], ABSENT, [], "", "0"),
    "a rival with the same content": ("AB", "AB", "", ["AB"], CONTESTED, ["01"], "", ""),
    "a rival that shares an item": ("AB", "ABC", "", ["BC"], CONTESTED, ["01"], "", "2"),
    "a rival that lies within": ("ABC", "ABC", "", ["B"], CONTESTED, ["012"], "", ""),
    "a rival beside it": ("AB", "ABCD", "", ["CD"], SAVED, ["01"], "", "23"),
    "a rival that is not there": ("AB", "AB", "", ["BC"], SAVED, ["01"], "", ""),
    "a rival whose content is bound": ("AB", "ABAB", "01", ["ABA"], SAVED, ["23"], "", ""),
    "a rival and nothing of ours": ("AB", "CD", "", ["CD"], ABSENT, [], "", "01"),
    "an altered copy": ("A", "A~", "", [], PARTIAL, [], "0", ""),
    "an altered item in the run": ("ABC", "AB~C", "", [], PARTIAL, [], "012", ""),
    "an altered copy beside the run": ("A", "A~xA", "", [], SAVED, ["2"], "", "01"),
}


@pytest.mark.parametrize(
    ("ours", "history", "bound", "rivals", "verdict", "runs", "parts", "foreign"), TABLE.values(), ids=TABLE.keys()
)
def test_the_table(ours, history, bound, rivals, verdict, runs, parts, foreign):
    finding = match(sent(ours), stored(history), bound=set(bound), rivals=[sent(rival) for rival in rivals])

    assert finding == Finding(verdict, tuple(tuple(run) for run in runs), tuple(parts), tuple(foreign))


def test_an_id_that_was_sent_is_ours_whatever_stands_there():
    """An id of another conversation's item brings that item, and not what was sent (recorded)."""
    ours = [{**sent("A")[0], "id": "1"}]

    finding = match(ours, stored("xZ"))

    assert finding == Finding(PARTIAL, (), ("1",), ("0",))


def test_a_kept_id_with_the_content_that_was_sent_is_the_run():
    ours = [{**sent("A")[0], "id": "1"}]

    assert match(ours, stored("xA")) == Finding(SAVED, (("1",),), (), ("0",))


def test_an_id_that_the_server_replaced_does_not_matter():
    ours = [{**sent("A")[0], "id": "msg_unknown"}]

    assert match(ours, stored("A")) == Finding(SAVED, (("0",),), (), ())


def test_an_item_without_type_and_with_string_content_is_found_in_its_stored_form():
    stored_form = {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "A"}],
    }

    assert match([{"role": "assistant", "content": "A"}], [stored_form]).ids == ("msg_1",)


def test_another_role_is_another_item():
    other = [{**stored("A")[0], "role": "assistant"}]

    assert match(sent("A"), other).verdict is ABSENT


def test_a_history_shorter_than_the_chunk_holds_no_run():
    assert match(sent("ABC"), stored("AB")).verdict is PARTIAL


def test_evidence_holds_ids_only_and_a_bounded_number_of_foreign_ones():
    evidence = match(sent("A"), stored("A" + "x" * 300 + "A")).evidence()

    assert evidence["runs"] == [["0"], ["301"]]
    assert evidence["extra"] == ["301"]
    assert evidence["parts"] == []
    assert evidence["foreign"] == [str(at) for at in range(1, MAX_IDS_KEPT + 1)]
    assert evidence["foreign_count"] == 300


def test_one_item_that_stands_twice_under_one_id_has_no_extra_copy_to_delete():
    """Recorded: one id can stand twice in a list. Deleting it would delete what is to be kept."""
    finding = match(sent("A"), [*stored("A"), *stored("A")])

    assert finding.evidence()["runs"] == [["0"], ["0"]]
    assert finding.extra_ids == ()


# -- properties ------------------------------------------------------------------------------------------------------

OURS = st.text("ABC", min_size=1, max_size=4)
FOREIGN = st.text("xyz", max_size=6)
PIECES = st.lists(FOREIGN | st.just("#"), max_size=4)
"""Pieces of a history: foreign items, and # for items that are bound, of equal content with the chunk."""


@st.composite
def histories(draw, copies):
    """A chunk, a history with `copies` of it, foreign items and bound twins of it, and the bound ids."""
    ours = draw(OURS)
    pieces = draw(PIECES)
    for _ in range(draw(copies)):
        pieces.insert(draw(st.integers(0, len(pieces))), "+")
    text, bound, runs = "", set(), []
    for piece in pieces:
        start = len(text)
        text += ours if piece in {"+", "#"} else piece
        ids = [str(at) for at in range(start, len(text))]
        if piece == "#":
            bound |= set(ids)
        if piece == "+":
            runs.append(tuple(ids))
    return ours, text, bound, runs


@given(histories(st.just(1)))
def test_a_run_that_was_inserted_once_is_saved_and_its_ids_are_told(case):
    ours, text, bound, (run,) = case

    finding = match(sent(ours), stored(text), bound=bound)

    assert (finding.verdict, finding.runs) == (SAVED, (run,))


@given(histories(st.just(0)))
def test_a_run_that_was_not_inserted_is_never_saved(case):
    ours, text, bound, _ = case

    assert match(sent(ours), stored(text), bound=bound).verdict is ABSENT


@given(histories(st.integers(2, 3)))
@example(("AA", "AAAA", set(), [("0", "1"), ("2", "3")]))
def test_a_run_that_was_inserted_more_than_once_is_neither_saved_nor_absent(case):
    ours, text, bound, runs = case

    finding = match(sent(ours), stored(text), bound=bound)

    assert finding.verdict in {DUPLICATED, CONTESTED}
    assert (finding.verdict is DUPLICATED) <= (set(finding.runs) == set(runs))


@given(OURS, st.text("ABCxyz", max_size=10), st.lists(OURS, max_size=2))
def test_whatever_the_history_every_item_is_counted_once_and_a_run_is_what_was_sent(ours, text, rivals):
    history = stored(text)

    finding = match(sent(ours), history, rivals=[sent(rival) for rival in rivals])

    in_runs = [one for run in finding.runs for one in run]
    told = [*in_runs, *finding.parts, *finding.foreign]
    assert len(told) == len(set(told))
    assert set(told) <= {item["id"] for item in history}
    assert all("".join(text[int(one)] for one in run) == ours for run in finding.runs)
    assert (finding.verdict is SAVED) <= (text.count(ours) == 1)
    assert (finding.verdict is ABSENT) == (not set(ours) & set(text))


@given(OURS, st.text("xyz", max_size=4), st.data())
def test_a_foreign_item_within_the_run_is_never_saved_or_absent(ours, foreign, data):
    """The API stores a batch whole and in one piece: items apart from each other are not that batch."""
    at = data.draw(st.integers(0, len(ours)))
    text = ours[:at] + foreign + ours[at:]
    torn = foreign and 0 < at < len(ours)

    verdict = match(sent(ours), stored(text)).verdict

    assert verdict is (PARTIAL if torn else SAVED)
