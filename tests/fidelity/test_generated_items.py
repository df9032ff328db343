"""Items of every type that the installed client knows arrive exactly, thousands of them, on whatever database runs.

A caller's item goes through intake, journal, the real client and the sandbox, is read back and matched.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import strategies as st

from convsessions import operations
from convsessions.items.comparison import differences
from convsessions.items.kinds import KEEPS_ID
from convsessions.states import WriteState
from tests.fidelity.documented import KINDS, Item, documented, examples
from tests.fidelity.journey import journey
from tests.fidelity.oracle import as_sent, as_stored, exactly, without_losses

EXAMPLES = 150
"""Items a type. A write takes them all, so that a thousand items cost no more than a few seconds."""

GROUPS = [KINDS[start::5] for start in range(5)]
"""Types that share a test, because emptying the database after each one takes longer than the test."""

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("patient")]


@pytest.fixture
def patient(quick):
    quick["REQUEST_TIMEOUT"] = 20.0


def check(sandbox, items: list[Item]) -> None:
    before = json.dumps(items)

    journeyed = journey(sandbox, items)

    assert journeyed.state == WriteState.SAVED
    assert json.dumps(items) == before, "the caller's items are the caller's"
    sent = [as_sent(item, keeps_id=item.get("type") in KEEPS_ID) for item in items]
    assert ",".join(payload[1:-1] for payload in journeyed.journaled) == ",".join(sent)
    given = [json.dumps(item, separators=(",", ":")) for item in items]
    assert journeyed.given == [
        None if text == original else original for text, original in zip(sent, given, strict=True)
    ]
    assert len(sent) == len(journeyed.stored) == len(journeyed.read)
    for text, stored, read in zip(sent, journeyed.stored, journeyed.read, strict=True):
        expected = as_stored(json.loads(text), stored)
        assert exactly(stored) == exactly(expected)
        assert exactly(without_losses(read)) == exactly(without_losses(expected))
        assert differences(json.loads(text), read) == []
    drift = operations.verify_session(journeyed.session.pk)
    assert (bool(drift), drift.checked, drift.foreign) == (False, len(items), [])


@pytest.mark.parametrize("kinds", GROUPS, ids=" ".join)
def test_items_of_every_type_survive_the_journey(sandbox, kinds):
    for kind in kinds:
        items = examples(documented(kind), EXAMPLES)
        assert {item.get("type", "message") for item in items} == {kind}

        check(sandbox, items)


def test_items_of_all_types_keep_their_order(sandbox):
    check(sandbox, examples(st.one_of([documented(kind) for kind in KINDS]), 3 * EXAMPLES))
