from __future__ import annotations

import pytest

from convsessions.admin.alignment import Mark, align, unread
from convsessions.admin.lines import compared, lines_of


def item(text, remote_id=None):
    content = {"type": "message", "role": "user", "content": text}
    return content if remote_id is None else {**content, "id": remote_id, "status": "completed"}


def stored(*texts):
    """One item for each text, with the ids r0, r1, \u2026"""
    return [item(text, f"r{index}") for index, text in enumerate(texts)]


def marks(rows):
    return " ".join(f"{row.mark}{'' if row.index is None else row.index}" for row in rows)


SENT = [item("a"), item("b"), item("c")]


@pytest.mark.parametrize(
    ("history", "given", "expected"),
    [
        ("", {}, "missing0 missing1 missing2"),
        ("x y", {}, "missing0 missing1 missing2 foreign foreign"),
        ("a b c", {"runs": [["r0", "r1", "r2"]]}, "found0 found1 found2"),
        ("x a b c y", {"runs": [["r1", "r2", "r3"]]}, "foreign found0 found1 found2 foreign"),
        (
            "a b c x a b c",
            {"runs": [["r0", "r1", "r2"], ["r4", "r5", "r6"]]},
            "found0 found1 found2 foreign extra0 extra1 extra2",
        ),
        ("a x c", {"parts": ["r0", "r2"]}, "found0 missing1 foreign found2"),
        ("b x", {"parts": ["r0"]}, "missing0 found1 missing2 foreign"),
        ("c a", {"parts": ["r0", "r1"]}, "found2 found0 missing1"),
        ("a a b", {"parts": ["r0", "r1", "r2"]}, "found0 extra0 found1 missing2"),
        ("q b c", {"parts": ["r0", "r1", "r2"], "claimed": ["r0", "r1", "r2"]}, "altered0 found1 found2"),
        ("a b", {"owners": {"r0": "w"}}, "missing0 missing1 missing2 other foreign"),
    ],
)
def test_rows_follow_the_remote_history_and_miss_nothing_that_was_sent(history, given, expected):
    assert marks(align(SENT, stored(*history.split()), **given)) == expected


def test_a_long_stretch_of_others_is_folded_with_its_ids():
    rows = align(SENT, stored("a", *(f"x{n}" for n in range(6)), "b"), parts=["r0", "r7"])

    assert marks(rows) == "found0 foreign foreign gap foreign foreign found1 missing2"
    assert rows[3].ids == ["r3", "r4"]


def test_a_foreign_item_that_equals_one_of_ours_says_so():
    (*_missing, foreign) = align(SENT, stored("b"))

    assert (foreign.mark, foreign.like) == (Mark.FOREIGN, 1)


def test_nothing_is_known_of_what_was_not_read():
    assert marks(unread(SENT)) == "unread0 unread1 unread2"


def test_differences_are_marked_word_by_word():
    assert compared("one two three", "one 2 three") == (
        (("same", "one "), ("gone", "two"), ("same", " three")),
        (("same", "one "), ("new", "2"), ("same", " three")),
    )


def test_without_the_permission_there_are_paths_and_no_text():
    rows = align([item("secret")], [item("other", "r0")], parts=["r0"], claimed=["r0"])
    (line,) = lines_of(rows, first_item=7, with_text=False)

    assert (line.position, line.sent, line.stored, line.paths) == (7, (), (), ["content[0].text"])
