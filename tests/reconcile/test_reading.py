"""Reading a history to its end: complete, or not at all."""

from __future__ import annotations

import pytest

from convsessions.reconcile.reading import read_history
from convsessions.remote import outcomes
from convsessions.states import HoldCode

from .notation import answer_from, cursor_gone, drive, page, stored


def read(answers, *, anchor=""):
    deadlines = iter(range(1, 1000))
    return drive(read_history("conv_1", anchor, lambda: float(next(deadlines))), answers)


def ids(history):
    return [item["id"] for item in history.items]


def test_the_history_after_the_anchor_is_read_in_pages_each_with_a_deadline_of_its_own():
    items = stored("x" * 5000)

    history, asked = read(lambda request: answer_from(items, request))

    assert history.complete
    assert ids(history) == [str(at) for at in range(5000)]
    assert history.pages == len(asked) == 50
    assert [request.after for request in asked[:3]] == ["", "99", "199"]
    assert [request.not_after for request in asked[:3]] == [1.0, 2.0, 3.0]
    assert {(request.order, request.limit, request.conversation_id) for request in asked} == {("asc", 100, "conv_1")}


def test_reading_begins_behind_the_anchor():
    history, asked = read(lambda request: answer_from(stored("abcd"), request), anchor="1")

    assert (history.complete, history.anchor_gone, ids(history)) == (True, False, ["2", "3"])
    assert [request.after for request in asked] == ["1"]


def test_an_empty_history_is_complete():
    history, _ = read(iter([page([])]))

    assert (history.complete, history.items) == (True, [])


STUCK = {
    "an empty page that says there is more": [page([], has_more=True)],
    "an empty page in the middle": [page(stored("ab"), has_more=True), page([], has_more=True)],
    "the same page again": [page(stored("ab"), has_more=True), page(stored("ab"), has_more=True)],
    "a cursor seen before": [
        page(stored("a"), has_more=True),
        page(stored("ab"), has_more=True),
        page(stored("a"), has_more=True),
    ],
}


@pytest.mark.parametrize("pages", STUCK.values(), ids=STUCK.keys())
def test_a_cursor_that_does_not_advance_makes_the_read_incomplete(pages):
    history, asked = read(iter(pages))

    assert not history.complete
    assert history.problem.code == "cursor_does_not_advance"
    assert len(asked) == len(pages)


@pytest.mark.parametrize(
    "problem",
    [outcomes.unknown("deadline"), outcomes.never_sent("ConnectError"), outcomes.unknown("no_item_list", status=200)],
    ids=["unknown", "not sent", "no page"],
)
def test_a_page_that_fails_half_way_makes_the_read_incomplete(problem):
    history, asked = read(iter([page(stored("ab"), has_more=True), problem]))

    assert (history.complete, history.problem, len(asked)) == (False, problem, 2)


def test_a_missing_conversation_is_the_problem_that_is_told():
    missing = outcomes.of_response(_any_list(), 404, {}, {"error": {"code": None}})

    history, _ = read(iter([missing]))

    assert history.problem.hold is HoldCode.MISSING


def _any_list():
    _, (request,) = read(iter([page([])]))
    return request


def test_where_the_anchor_was_deleted_the_whole_history_is_read():
    history, asked = read(lambda request: answer_from(stored("abc"), request), anchor="deleted")

    assert (history.complete, history.anchor_gone, ids(history)) == (True, True, ["0", "1", "2"])
    assert [request.after for request in asked] == ["deleted", ""]
    assert history.pages == 2


def test_a_cursor_that_is_deleted_in_the_middle_of_the_read_does_not_cost_the_anchor():
    """Somebody deleted the last item of the first page: the anchor still marks where to look."""
    answers = [page(stored("ab"), has_more=True), cursor_gone(), page(stored("ac"))]

    history, asked = read(iter(answers), anchor="anchor")

    assert (history.complete, history.anchor_gone, ids(history)) == (True, False, ["0", "1"])
    assert [request.after for request in asked] == ["anchor", "1", "anchor"]


def test_an_anchor_that_is_deleted_in_the_middle_of_the_read_is_noticed():
    answers = [page(stored("ab"), has_more=True), cursor_gone(), cursor_gone(), page(stored("xac"))]

    history, asked = read(iter(answers), anchor="anchor")

    assert (history.complete, history.anchor_gone, ids(history)) == (True, True, ["0", "1", "2"])
    assert [request.after for request in asked] == ["anchor", "1", "anchor", ""]


def test_a_history_whose_cursors_vanish_again_and_again_is_given_up():
    def hostile(request):
        return cursor_gone() if request.after else page(stored("ab"), has_more=True)

    history, asked = read(hostile)

    assert not history.complete
    assert history.problem.param == "after"
    assert len(asked) < 20


def test_a_server_that_denies_a_cursor_that_was_not_given_is_not_asked_for_ever():
    history, asked = read(iter([cursor_gone()]))

    assert (history.complete, len(asked)) == (False, 1)
