"""The outcome table of DESIGN.md §4: what a server answers. The fault is made at the wire, the client is real."""

from __future__ import annotations

import datetime as dt
from email.utils import format_datetime

import pytest

from convsessions.remote.calls import CreateConversation
from convsessions.remote.outcomes import Then
from convsessions.states import HoldCode, OutcomeKind

from . import wire
from .conftest import append, delete_conversation, delete_item, list_items, within
from .rows import APPLIED, REFUSED, STORED, UNKNOWN, held, row

# -- applied ---------------------------------------------------------------------------------------------------------


def test_a_list_with_an_id_for_each_item_is_applied(perform, serve):
    server = serve(wire.answers(200, STORED, x_request_id="req_7"))

    outcome = perform(append(), server.base_url)

    assert (row(outcome), outcome.status, outcome.request_id) == (APPLIED, 200, "req_7")
    assert outcome.ids == ["msg_1", "msg_2"]


def test_the_body_is_sent_as_it_was_recorded_with_its_length(perform, serve):
    server = serve(wire.answers(200, STORED))
    call = append()

    perform(call, server.base_url)

    (request,) = server.requests
    assert (request.method, request.body) == ("POST", call.body)
    assert request.path.startswith("/v1/conversations/conv_1/items?include")
    assert request.headers["content-length"] == str(len(call.body))
    assert request.headers["content-type"] == "application/json"


# -- told to wait ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (400, "conversation_locked", (OutcomeKind.NOT_APPLIED, Then.RETRY, HoldCode.LOCKED)),
        (429, "rate_limit_exceeded", (OutcomeKind.NOT_APPLIED, Then.RETRY, HoldCode.RATE_LIMITED)),
        (429, None, (OutcomeKind.NOT_APPLIED, Then.RETRY, HoldCode.RATE_LIMITED)),
        (429, "insufficient_quota", held(HoldCode.QUOTA)),
        (401, "invalid_api_key", held(HoldCode.BAD_KEY)),
        (401, None, held(HoldCode.BAD_KEY)),
        (403, None, held(HoldCode.FORBIDDEN)),
    ],
)
def test_a_request_that_was_turned_away_is_not_applied_and_waits(perform, serve, status, code, expected):
    server = serve(wire.fails(status, code, x_request_id="req_8"))

    outcome = perform(append(), server.base_url)

    assert (row(outcome), outcome.status, outcome.request_id) == (expected, status, "req_8")
    assert outcome.code == (code or f"http_{status}")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0.25", 0.25),
        (" 3 ", 3.0),
        ("0", 0.0),
        ("-5", 0.0),
        ("31536000", 31_536_000.0),  # bounded where it is used: by RETRY_BACKOFF
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("1e999", None),
        ("Wed, 99 Oct 2015 07:28:00 GMT", None),
        ("Fri, 31 Dec 99999 23:59:59 GMT", None),
    ],
)
def test_how_long_to_wait_is_taken_from_the_header_or_unknown(perform, serve, header, seconds):
    server = serve(wire.fails(429, retry_after=header))

    assert perform(append(), server.base_url).retry_after == seconds


def test_how_long_to_wait_may_be_an_http_date(perform, serve):
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=90)
    server = serve(wire.fails(429, retry_after=format_datetime(moment, usegmt=True)))

    assert perform(append(), server.base_url).retry_after == pytest.approx(90, abs=3)


# -- a definite no ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_definite_no_refuses_the_whole_batch_and_names_the_item(perform, serve, status):
    server = serve(wire.fails(status, "unknown_parameter", "items[3].content[0].text"))

    outcome = perform(append(), server.base_url)

    assert (row(outcome), outcome.status) == (REFUSED, status)
    assert (outcome.code, outcome.param) == ("unknown_parameter", "items[3].content[0].text")


def test_an_item_that_is_there_already_may_be_ours_so_it_is_looked_for(perform, serve):
    server = serve(wire.fails(400, "item_already_in_conversation", "items"))

    outcome = perform(append(), server.base_url)

    assert row(outcome) == (OutcomeKind.NOT_APPLIED, Then.RECONCILE, HoldCode.NONE)


# -- 404 in its meanings ---------------------------------------------------------------------------------------------


def test_404_on_an_append_is_a_missing_conversation(perform, serve):
    server = serve(wire.fails(404))

    assert row(perform(append(), server.base_url)) == held(HoldCode.MISSING)


def test_404_on_an_append_that_names_an_item_refuses_the_batch(perform, serve):
    server = serve(wire.fails(404, None, "items[0].id"))

    assert row(perform(append(), server.base_url)) == REFUSED


def test_404_on_reading_is_a_missing_conversation(perform, serve):
    server = serve(wire.fails(404))

    assert row(perform(list_items(after="msg_1"), server.base_url)) == held(HoldCode.MISSING)


def test_404_that_names_the_cursor_means_reading_again_from_the_start(perform, serve):
    server = serve(wire.fails(404, None, "after"))

    outcome = perform(list_items(after="msg_1"), server.base_url)

    assert row(outcome) == (OutcomeKind.NOT_APPLIED, Then.READ_FROM_START, HoldCode.NONE)


@pytest.mark.parametrize("call", [delete_item, delete_conversation])
def test_404_on_a_deletion_means_that_it_is_done(perform, serve, call):
    server = serve(wire.fails(404))

    outcome = perform(call(), server.base_url)

    assert (row(outcome), outcome.code) == (APPLIED, "already_gone")


@pytest.mark.parametrize("call", [delete_item, delete_conversation])
def test_404_on_a_deletion_that_is_not_the_apis_own_says_nothing(perform, serve, call):
    server = serve(wire.answers(404, b"<h1>Not Found</h1>", content_type="text/html"))

    assert row(perform(call(), server.base_url)) == UNKNOWN


def test_404_on_creating_a_conversation_is_a_wrong_address(perform, serve):
    server = serve(wire.fails(404))

    assert row(perform(CreateConversation(not_after=within(5)), server.base_url)) == held(HoldCode.UNREACHABLE)
