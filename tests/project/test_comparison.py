"""The demo's judgement would be worth nothing if it could not find fault."""

from __future__ import annotations

import pytest

from project.demo.comparison import Comparison, compare
from project.demo.transcript import transcript


def stored(items):
    return [{**item, "id": f"id_{place}", "status": "completed"} for place, item in enumerate(items)]


SENT = transcript()


def test_the_transcript_is_what_the_readme_says():
    kinds = {item["type"] for item in SENT}

    assert len(SENT) == 137
    assert kinds == {"message", "function_call", "function_call_output", "reasoning"}
    assert not any("id" in item for item in SENT)
    assert any(part["type"] == "input_image" for item in SENT for part in _parts(item))


def test_an_exact_history():
    found = compare(SENT, stored(SENT))

    assert found == Comparison(lost=0, duplicates=0, strangers=0, in_order=True)
    assert found.is_exact


@pytest.mark.parametrize(
    ("history", "found"),
    [
        (SENT[:60] + SENT[61:], Comparison(lost=1, duplicates=0, strangers=0, in_order=True)),
        (SENT + SENT[-20:], Comparison(lost=0, duplicates=20, strangers=0, in_order=True)),
        (SENT[:20] + SENT[:20] + SENT[20:], Comparison(lost=0, duplicates=20, strangers=0, in_order=True)),
        ([SENT[1], SENT[0], *SENT[2:]], Comparison(lost=0, duplicates=0, strangers=0, in_order=False)),
        ([*SENT, {"type": "message", "role": "user", "content": "?"}], Comparison(0, 0, 1, in_order=True)),
        ([], Comparison(lost=137, duplicates=0, strangers=0, in_order=True)),
    ],
    ids=["lost", "doubled at the end", "doubled in the middle", "swapped", "a stranger", "empty"],
)
def test_a_history_with_a_fault(history, found):
    assert compare(SENT, stored(history)) == found
    assert not found.is_exact


def _parts(item):
    content = item.get("content")
    return content if isinstance(content, list) else []
