"""Concrete items, one row each, through the whole product: sent as, stored as, came back as, or refused with a path."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from convsessions import operations
from convsessions.exceptions import InvalidItem
from convsessions.items.comparison import differences
from convsessions.items.kinds import REQUIRED
from convsessions.models import WriteIntent
from convsessions.states import WriteState
from tests.fidelity.journey import journey
from tests.fidelity.oracle import exactly
from tests.fidelity.rows import SAME, Arrives, Omitted, Refused, RefusedByTheApi
from tests.fidelity.table_calls import CALLS
from tests.fidelity.table_messages import MESSAGES
from tests.fidelity.table_others import OTHERS

ROWS = [*MESSAGES, *CALLS, *OTHERS]


def of(kind: type) -> list[Any]:
    return [pytest.param(row, id=row.name) for row in ROWS if isinstance(row, kind)]


def bare(item: dict[str, Any]) -> str:
    return exactly({key: value for key, value in item.items() if key != "id"})


def compact(item: Any) -> str:
    plain = item if isinstance(item, dict) else item.model_dump(exclude_unset=True, by_alias=True)
    return json.dumps(plain, separators=(",", ":"))


pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("row", of(Arrives))
def test_it_arrives(sandbox, quick, row):
    quick["REQUEST_TIMEOUT"] = 20.0
    sent = row.given if row.sent is SAME else row.sent
    stored = {**sent, "type": sent.get("type", "message")} if row.stored is SAME else row.stored
    back = stored if row.back is SAME else row.back

    journeyed = journey(sandbox, [row.given])

    assert journeyed.state == WriteState.SAVED
    assert journeyed.journaled == [f"[{compact(sent)}]"]
    assert journeyed.given == [None if row.sent is SAME else compact(row.given)]
    assert [bare(item) for item in journeyed.stored] == [bare(stored)]
    assert [bare(item) for item in journeyed.read] == [bare(back)]
    assert differences(sent, journeyed.read[0]) == []
    assert not operations.verify_session(journeyed.session.pk)


@pytest.mark.parametrize("row", of(Omitted))
def test_it_is_counted_as_handled_and_not_sent(sandbox, row):
    journeyed = journey(sandbox, [row.given])

    assert (journeyed.state, journeyed.journaled, journeyed.read) == (WriteState.SAVED, [], [])
    assert sandbox.requests() == []


@pytest.mark.parametrize("row", of(Refused))
def test_it_is_refused_before_it_is_recorded(row):
    session = operations.create_session()

    with pytest.raises(InvalidItem) as refused:
        operations.append_items(session.pk, [row.given])

    assert (refused.value.field, refused.value.code) == (row.path, row.code)
    assert not WriteIntent.objects.exists()


@pytest.mark.parametrize("row", of(RefusedByTheApi))
def test_the_api_refuses_it_and_the_write_says_why(sandbox, row):
    journeyed = journey(sandbox, [row.given])

    write = WriteIntent.objects.get()
    assert (journeyed.state, write.error_code, write.error_param) == (WriteState.REFUSED, row.code, row.param)
    assert journeyed.read == []


def test_the_table_has_every_known_type_and_names_each_row_once():
    given = [row.given for row in ROWS if isinstance(row, Arrives) and isinstance(row.given, dict)]

    assert {item.get("type") or "message" for item in given} == REQUIRED.keys() - {"item_reference"}
    assert [name for name, count in Counter(row.name for row in ROWS).items() if count > 1] == []
    assert len(ROWS) >= 60


def test_a_reference_links_the_item_that_another_conversation_holds(sandbox):
    first = journey(sandbox, [{"role": "user", "content": "x"}])

    second = journey(sandbox, [{"type": "item_reference", "id": first.stored[0]["id"]}])

    assert second.state == WriteState.SAVED
    assert second.read == first.read
    assert not operations.verify_session(second.session.pk)
