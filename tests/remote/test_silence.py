"""What is said of requests and outcomes shows ids, codes and times, and never content or keys (P8)."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convsessions.remote import outcomes
from convsessions.remote.calls import AppendItems, CreateConversation, DeleteItem, ListItems
from convsessions.states import OutcomeKind

from . import wire
from .conftest import KEY, SECRET, append, stored


def test_the_repr_of_a_call_shows_no_content():
    create = CreateConversation(not_after=1.0, metadata={"note": SECRET})
    call = AppendItems(conversation_id="conv_1", payload=f'["{SECRET}"]', count=1, not_after=1.0)

    assert repr(call) == "AppendItems(conversation_id='conv_1', not_after=1.0, count=1)"
    assert repr(create) == "CreateConversation(conversation_id='', not_after=1.0)"


@pytest.mark.parametrize(
    "script",
    [
        wire.answers(200, {**stored("msg_1", "msg_2"), "text": SECRET}),
        wire.answers(200, {"data": [{"id": SECRET}], "text": SECRET}),
        wire.fails(400, "invalid_value", "items[0]"),  # its message quotes the content
        wire.fails(500),
        wire.answers(200, SECRET.encode()),
        wire.resets_after_request,
    ],
    ids=["applied", "no list", "refused", "500", "no JSON", "reset"],
)
def test_neither_an_outcome_nor_our_log_shows_content_or_a_key(perform, serve, caplog, script):
    caplog.set_level(logging.DEBUG, logger="convsessions")
    server = serve(script)

    outcome = perform(append(), server.base_url)

    ours = " ".join(record.getMessage() for record in caplog.records if record.name.startswith("convsessions"))
    for text in (repr(outcome), str(outcome), ours):
        assert SECRET not in text
        assert KEY not in text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
    max_leaves=10,
)
ERRORS = st.builds(lambda code, param: {"error": {"code": code, "param": param}}, JSON, JSON)
PAGES = st.builds(lambda data, more: {"data": data, "has_more": more}, st.lists(JSON) | JSON, JSON)
CALLS = st.sampled_from(
    [
        AppendItems(conversation_id="conv_1", payload="[]", count=1, not_after=1.0),
        ListItems(conversation_id="conv_1", after="msg_1", not_after=1.0),
        DeleteItem(conversation_id="conv_1", item_id="msg_1", not_after=1.0),
        CreateConversation(not_after=1.0),
    ]
)


@given(CALLS, st.integers(100, 999), st.text(), JSON | ERRORS | PAGES)
def test_no_answer_whatever_makes_the_table_fail(call, status, header, body):
    """A failure here would kill the worker over an answer, again and again."""
    outcome = outcomes.of_response(call, status, {"retry-after": header, "x-request-id": header}, body)

    assert outcome.kind in OutcomeKind
    assert (outcome.kind is OutcomeKind.APPLIED) <= (200 <= status < 300 or status == 404)
    assert all(len(text) <= 128 and text.isprintable() for text in (outcome.code, outcome.param))
    assert outcome.request_id.isprintable()
    assert outcome.retry_after is None or 0 <= outcome.retry_after < float("inf")


@given(st.text() | st.from_regex(r"[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} \d+ \d+:\d+:\d+ ([A-Z]{3}|[+-]\d{4})"))
def test_no_retry_after_whatever_makes_the_table_fail(header):
    call = DeleteItem(conversation_id="conv_1", item_id="msg_1", not_after=1.0)

    outcome = outcomes.of_response(call, 429, {"retry-after": header}, None)

    assert outcome.retry_after is None or 0 <= outcome.retry_after < float("inf")
