"""When to read, how often, and when absence counts: `decide` with a scripted remote and a clock that is set by hand."""

from __future__ import annotations

import pytest

from convsessions.reconcile.engine import Question, Seen, TooEarly, Unreadable, decide, find_copies, judge
from convsessions.reconcile.reading import History, read_history
from convsessions.remote import clock, outcomes
from convsessions.remote.calls import ListItems, Pause
from convsessions.states import Verdict

from .notation import answer_from, drive, sent, stored


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0


class Remote:
    """Gives the n-th read the n-th history; a history is a string, or the outcome that the read ends in.

    Each request takes `latency` seconds of the clock; a pause takes as long as it says.
    """

    def __init__(self, time: Clock, *histories, latency: float = 0.0) -> None:
        self.time, self.histories, self.latency = time, list(histories), latency
        self.log: list[str | float] = []

    def __call__(self, request):
        if isinstance(request, Pause):
            self.log.append(request.seconds)
            self.time.now += request.seconds
            return None
        assert isinstance(request, ListItems)
        self.log.append("read")
        self.time.now += self.latency
        history = self.histories.pop(0)
        return history if isinstance(history, outcomes.Outcome) else answer_from(stored(history), request)


@pytest.fixture
def time(monkeypatch):
    """Simulated: nothing here waits."""
    hands = Clock()
    monkeypatch.setattr(clock, "now", lambda: hands.now)
    return hands


def question(text="AB", *, absence_in=0.0, **options):
    return Question(
        conversation_id="conv_1",
        anchor=options.pop("anchor", ""),
        sent=sent(text),
        absence_from=1000.0 + absence_in,
        **options,
    )


def ask(question, remote, *, patience=60.0, seen=None):
    answer, _ = drive(decide(question, lambda: remote.time.now + 30.0, lambda: patience, seen or Seen()), remote)
    return answer


def test_presence_counts_at_once(time):
    remote = Remote(time, "xAB")

    answer = ask(question(absence_in=35.0), remote)

    assert (answer.verdict, answer.ids) == (Verdict.SAVED, ("1", "2"))
    assert remote.log == ["read"]


def test_what_was_read_once_answers_further_questions_from_the_same_item_on_but_not_that_nothing_is_there(time):
    remote, seen = Remote(time, "ABCD", "ABCDE", "ABCDE"), Seen()

    first = ask(question("AB"), remote, seen=seen)
    second = ask(question("CD", bound=first.ids), remote, seen=seen)

    assert (second.verdict, second.ids, remote.log) == (Verdict.SAVED, ("2", "3"), ["read"])
    assert ask(question("E", bound=[*first.ids, *second.ids]), remote, seen=seen).ids == ("4",)
    assert remote.log == ["read", "read"]

    seen.forget()
    assert ask(question("E", bound=[*first.ids, *second.ids]), remote, seen=seen).ids == ("4",)
    assert remote.log == ["read"] * 3


def test_what_was_read_from_another_item_on_answers_nothing(time):
    remote, seen = Remote(time, "ABCD", "ABCD"), Seen()
    ask(question("AB"), remote, seen=seen)

    assert ask(question("CD", anchor="1"), remote, seen=seen).ids == ("2", "3")
    assert remote.log == ["read", "read"]


def test_absence_needs_two_reads(time):
    remote = Remote(time, "x", "x")

    answer = ask(question(), remote)

    assert answer.verdict is Verdict.ABSENT
    assert remote.log == ["read", "read"]


def test_what_only_the_second_read_sees_is_saved(time):
    """The first one came from a replica that lagged."""
    remote = Remote(time, "x", "xAB")

    assert ask(question(), remote).verdict is Verdict.SAVED
    assert remote.log == ["read", "read"]


def test_absence_before_the_settle_delay_is_over_counts_for_nothing(time):
    remote = Remote(time, "x", "x", "x")

    answer = ask(question(absence_in=35.0), remote)

    assert answer.verdict is Verdict.ABSENT
    assert remote.log == ["read", 35.0, "read", "read"]


def test_a_request_that_lands_during_the_settle_delay_is_saved(time):
    remote = Remote(time, "x", "xAB")

    assert ask(question(absence_in=35.0), remote).verdict is Verdict.SAVED
    assert remote.log == ["read", 35.0, "read"]


def test_a_read_that_began_before_the_settle_delay_was_over_is_no_evidence_of_absence(time):
    """It may have seen the history as it was when it began."""
    remote = Remote(time, "x", "x", "x", latency=4.0)

    answer = ask(question(absence_in=3.0), remote)

    assert answer.verdict is Verdict.ABSENT
    assert remote.log == ["read", 0.0, "read", "read"]


def test_a_wait_that_is_longer_than_the_patience_is_left_to_another_task(time):
    remote = Remote(time, "x")

    answer = ask(question(absence_in=35.0), remote, patience=10.0)

    assert answer == TooEarly(35.0)
    assert remote.log == ["read"]


def test_what_is_left_of_the_wait_is_counted_from_the_end_of_the_read(time):
    remote = Remote(time, "x", latency=5.0)

    assert ask(question(absence_in=35.0), remote, patience=10.0) == TooEarly(30.0)


@pytest.mark.parametrize(
    ("history", "verdict"), [("A", Verdict.PARTIAL), ("ABAB", Verdict.DUPLICATED), ("AxB", Verdict.PARTIAL)]
)
def test_nothing_but_presence_is_concluded_before_the_settle_delay_is_over(time, history, verdict):
    remote = Remote(time, history, history)

    answer = ask(question(absence_in=35.0), remote)

    assert answer.verdict is verdict
    assert remote.log == ["read", 35.0, "read"]


def test_a_part_that_was_the_beginning_of_the_whole_is_saved(time):
    """A server that shows a batch while it is being stored."""
    remote = Remote(time, "A", "AB")

    assert ask(question(absence_in=35.0), remote).verdict is Verdict.SAVED


def test_a_history_that_cannot_be_read_decides_nothing(time):
    problem = outcomes.unknown("http_500", status=500)
    remote = Remote(time, "x", problem)

    assert ask(question(), remote) == Unreadable(problem)


def test_the_evidence_names_the_anchor_and_how_far_the_read_went(time):
    remote = Remote(time, "pqABz")

    answer = ask(question(anchor="1"), remote)

    assert answer.evidence() == {
        "runs": [["2", "3"]],
        "extra": [],
        "parts": [],
        "foreign": ["4"],
        "foreign_count": 1,
        "anchor": "1",
        "anchor_gone": False,
        "pages": 1,
        "items_read": 3,
        "last_id": "4",
    }


def test_the_repr_of_a_question_shows_no_content():
    assert "mark" not in repr(question("AB", rivals=[sent("A")], bound={"msg_secret"}))
    assert "secret" not in repr(question("AB", bound={"msg_secret"}))


# -- judge -----------------------------------------------------------------------------------------------------------


def history(text, **options):
    return History(items=stored(text), pages=1, **options)


def test_only_what_follows_the_last_bound_item_is_looked_at():
    """Chunks are sent one after the other: nothing of this one can stand before what is saved already."""
    assert judge(question("A", bound={"1"}), history("Aq")).verdict is Verdict.ABSENT
    assert judge(question("A", bound={"1"}), history("AqA")).ids == ("2",)


def test_with_a_deleted_anchor_the_last_bound_item_marks_where_to_look():
    finding = judge(question("A", bound={"1"}, anchor="gone"), history("AqA", anchor_gone=True))

    assert (finding.verdict, finding.ids) == (Verdict.SAVED, ("2",))
    assert finding.evidence()["anchor_gone"] is True


def test_with_a_deleted_anchor_and_nothing_bound_presence_is_contested():
    """What is found may be older than the request."""
    assert judge(question("A", anchor="gone"), history("xA", anchor_gone=True)).verdict is Verdict.CONTESTED


def test_with_a_deleted_anchor_and_nothing_bound_absence_from_the_whole_history_is_absence():
    assert judge(question("A", anchor="gone"), history("xyz", anchor_gone=True)).verdict is Verdict.ABSENT


# -- find_copies -----------------------------------------------------------------------------------------------------


def test_no_copy_beside_the_originals_is_saved():
    finding = find_copies([(sent("AB"), ["0", "1"])], history("ABx"), {"0", "1"})

    assert (finding.verdict, finding.runs) == (Verdict.SAVED, ())
    assert finding.evidence()["extra"] == []


def test_a_copy_is_told_after_the_original_and_its_items_are_extra():
    finding = find_copies([(sent("AB"), ["0", "1"])], history("ABxAB"), {"0", "1"})

    assert (finding.verdict, finding.runs) == (Verdict.DUPLICATED, (("0", "1"), ("3", "4")))
    assert finding.evidence()["extra"] == ["3", "4"]


def test_a_copy_that_landed_before_the_original_is_found_too():
    finding = find_copies([(sent("AB"), ["3", "4"])], history("ABxAB"), {"3", "4"})

    assert finding.evidence()["extra"] == ["0", "1"]


def test_copies_of_several_chunks_are_told_together():
    originals = [(sent("A"), ["0"]), (sent("BC"), ["1", "2"]), (sent("D"), ["3"])]

    finding = find_copies(originals, history("ABCDBCA"), {"0", "1", "2", "3"})

    assert finding.runs == (("0",), ("6",), ("1", "2"), ("4", "5"))
    assert finding.evidence()["extra"] == ["6", "4", "5"]


def test_a_part_of_a_chunk_is_no_copy():
    """The API stores a batch whole: a single equal item is somebody saying the same again."""
    assert find_copies([(sent("AB"), ["0", "1"])], history("ABA"), {"0", "1"}).verdict is Verdict.SAVED


def test_an_item_that_two_overlapping_copies_share_is_extra_once():
    finding = find_copies([(sent("AA"), ["0", "1"])], history("AAAAA"), {"0", "1"})

    assert finding.evidence()["extra"] == ["2", "3", "4"]


def test_items_that_are_bound_to_other_writes_are_no_copies():
    assert find_copies([(sent("A"), ["0"])], history("AA"), {"0", "1"}).verdict is Verdict.SAVED


def test_a_history_of_5000_items_in_50_pages_is_decided(time):
    text = "x" * 4990 + "AB" + "y" * 8
    items = stored(text)
    seen = []

    def remote(request):
        seen.append(request)
        return answer_from(items, request)

    answer, _ = drive(decide(question("AB"), lambda: 0.0, lambda: 0.0, Seen()), remote)

    assert (answer.verdict, answer.ids) == (Verdict.SAVED, ("4990", "4991"))
    assert len(seen) == 50


def test_a_reading_never_pauses():
    """`drivers.read_all` relies on it."""
    _, asked = drive(read_history("conv_1", "", lambda: 0.0), lambda request: answer_from(stored("x" * 250), request))

    assert [type(request) for request in asked] == [ListItems] * 3
