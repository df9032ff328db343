"""The outcome table of DESIGN.md §4: requests of which nobody knows what became of them, and the deadline."""

from __future__ import annotations

import asyncio
import threading
import time

import openai
import pytest

from convsessions.remote import clock, gateway
from convsessions.remote.calls import CreateConversation

from . import wire
from .conftest import KEY, append, list_items, stored, within
from .rows import STORED, UNKNOWN, row

# -- unknown ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status", [402, 405, 406, 408, 409, 410, 418, 451, 500, 501, 502, 503, 504, 507, 520, 529, 599]
)
def test_every_other_status_leaves_it_unknown_and_is_not_sent_again_by_the_client(perform, serve, status):
    server = serve(wire.fails(status, x_should_retry="true"))

    outcome = perform(append(), server.base_url, max_retries=5)

    assert (row(outcome), outcome.status) == (UNKNOWN, status)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(perform, serve, status):
    elsewhere = serve(wire.answers(200, STORED))
    server = serve(wire.answers(status, location=f"{elsewhere.base_url}/conversations/conv_1/items"))

    outcome = perform(append(), server.base_url)

    assert (row(outcome), outcome.status) == (UNKNOWN, status)
    assert (len(server.requests), elsewhere.connections) == (1, 0)


WHOLE = wire.reply(200, b'{"object":"list","data":[{"id":"msg_1"},{"id":"msg_2"}]}')
ENDS_EARLY = {
    "closed before a byte of the reply": wire.closes_after_request,
    "reset before a byte of the reply": wire.resets_after_request,
    "closed within the headers": wire.sends_then(WHOLE[:30], lambda connection: connection.socket.close()),
    "reset within the headers": wire.sends_then(WHOLE[:30], wire.Connection.reset),
    "closed within the body": wire.sends_then(WHOLE[:-9], lambda connection: connection.socket.close()),
    "reset within the body": wire.sends_then(WHOLE[:-9], wire.Connection.reset),
    "closed by a server that never read": wire.closes_at_once,
    "not HTTP at all": wire.sends_then(b"SSH-2.0-OpenSSH_9.6\r\n", lambda connection: connection.socket.close()),
}


@pytest.mark.parametrize("script", ENDS_EARLY.values(), ids=ENDS_EARLY.keys())
def test_a_connection_that_ends_early_leaves_it_unknown_and_is_not_opened_again(perform, serve, script):
    server = serve(script)

    outcome = perform(append(), server.base_url, max_retries=5)

    assert row(outcome) == UNKNOWN
    assert server.connections == 1


LONGER, SHORTER = {"content_length": "999"}, {"content_length": "20"}
NOT_WHAT_WAS_ASKED_FOR = {
    "truncated JSON": (wire.answers(200, b'{"object":"list","data":[{"id":"ms'), "not_a_json_object"),
    "HTML": (wire.answers(200, b"<html>Welcome to the hotel</html>", content_type="text/html"), "not_a_json_object"),
    "nothing": (wire.answers(200, b""), "not_a_json_object"),
    "no content": (wire.answers(204, b""), "not_a_json_object"),
    "not UTF-8": (wire.answers(200, b'{"object":"\xff\xfe"}'), "not_a_json_object"),
    "nested too deep": (wire.answers(200, b"[" * 200_000 + b"]" * 200_000), "not_a_json_object"),
    "an integer of 5,000 digits": (wire.answers(200, b'{"data":' + b"9" * 5000 + b"}"), "no_item_list"),
    "an array": (wire.answers(200, [STORED]), "not_a_json_object"),
    "null": (wire.answers(200, b"null"), "not_a_json_object"),
    "an error object with 200": (wire.fails(200, "server_error"), "error_in_a_success"),
    "data that is no list": (wire.answers(200, {"data": {"id": "msg_1"}}), "no_item_list"),
    "items that are no objects": (wire.answers(200, {"data": ["msg_1", "msg_2"]}), "no_item_list"),
    "fewer ids than items": (wire.answers(200, stored("msg_1")), "wrong_number_of_ids"),
    "more ids than items": (wire.answers(200, stored("msg_1", "msg_2", "msg_3")), "wrong_number_of_ids"),
    "shorter than its content-length": (wire.answers(200, STORED, **LONGER), "RemoteProtocolError"),
    "longer than its content-length": (wire.answers(200, STORED, **SHORTER), "not_a_json_object"),
    "gzip that is none": (wire.answers(200, STORED, content_encoding="gzip"), "DecodingError"),
}


@pytest.mark.parametrize(("script", "code"), NOT_WHAT_WAS_ASKED_FOR.values(), ids=NOT_WHAT_WAS_ASKED_FOR.keys())
def test_a_success_that_is_not_the_expected_object_leaves_it_unknown(perform, serve, script, code):
    server = serve(script)

    outcome = perform(append(), server.base_url, max_retries=5)

    assert (row(outcome), outcome.code) == (UNKNOWN, code)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "no_id", ["", "msg_\0", "msg_\n", "msg_é", "m" * 129, 7, None, True, ["msg_1"], {"id": "msg_1"}]
)
def test_an_id_that_is_none_leaves_it_unknown(perform, serve, no_id):
    server = serve(wire.answers(200, {"data": [{"id": "msg_1"}, {"id": no_id}], "has_more": False}))

    assert row(perform(append(), server.base_url)) == UNKNOWN
    assert row(perform(list_items(), server.base_url)) == UNKNOWN


def test_a_conversation_without_an_id_leaves_its_creation_unknown(perform, serve):
    server = serve(wire.answers(200, {"object": "conversation"}))

    outcome = perform(CreateConversation(not_after=within(5)), server.base_url)

    assert (row(outcome), outcome.code) == (UNKNOWN, "no_conversation_id")


@pytest.mark.parametrize("has_more", [None, "false", 0])
def test_a_page_that_does_not_say_whether_more_follows_is_no_page(perform, serve, has_more):
    server = serve(wire.answers(200, {**STORED, "has_more": has_more}))

    outcome = perform(list_items(), server.base_url)

    assert (row(outcome), outcome.code) == (UNKNOWN, "no_has_more")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error":"no"}', b'{"error":{"code":5,"param":["x"]}}'])
def test_an_error_without_a_readable_error_object_is_judged_by_its_status(perform, serve, body):
    server = serve(wire.answers(500, body))

    outcome = perform(append(), server.base_url)

    assert (row(outcome), outcome.code, outcome.param) == (UNKNOWN, "http_500", "")


def test_what_an_error_says_of_itself_is_cut_to_what_a_column_holds(perform, serve):
    server = serve(wire.fails(400, "c" * 500, "p" * 500, x_request_id="r" * 500))

    outcome = perform(append(), server.base_url)

    assert [len(text) for text in (outcome.code, outcome.param, outcome.request_id)] == [64, 128, 128]


def test_an_error_code_with_control_characters_is_dropped(perform, serve):
    server = serve(wire.fails(400, "bad\0code", "items[0]\n"))

    outcome = perform(append(), server.base_url)

    assert (outcome.code, outcome.param) == ("http_400", "")


# -- the deadline ----------------------------------------------------------------------------------------------------

SLOW = {
    "never answers": wire.never_answers,
    "trickles its headers": wire.trickles(wire.reply(200, b"{}")),
    "trickles its body": wire.trickles(WHOLE, at_once=WHOLE.index(b"{")),
}


@pytest.mark.parametrize("script", SLOW.values(), ids=SLOW.keys())
def test_the_deadline_holds_whatever_the_server_does(perform, serve, script):
    server = serve(script)
    began = time.monotonic()

    outcome = perform(append(seconds=0.4), server.base_url, max_retries=5)

    assert 0.4 <= time.monotonic() - began < 10
    assert row(outcome) == UNKNOWN
    assert len(server.requests) == 1


def test_an_upload_that_stalls_ends_at_the_deadline_and_is_never_completed(perform, serve):
    ready = threading.Event()
    server = serve(wire.drains_when(ready), window=wire.SMALL_WINDOW)
    call = append(payload=f'["{"x" * 16_000_000}"]', count=1, seconds=0.5)
    began = time.monotonic()

    outcome = perform(call, server.base_url, max_retries=5)

    assert 0.5 <= time.monotonic() - began < 10
    assert row(outcome) == UNKNOWN
    ready.set()
    assert server.drained.wait(10)
    assert 0 < len(server.received) < len(call.body)
    assert server.connections == 1


def test_an_upload_that_is_still_slow_at_the_deadline_sends_no_further_piece(serve):
    """The sync gateway cannot interrupt its thread: the body itself ends at the deadline."""
    call = append(payload=f'["{"x" * 300_000}"]', count=1, seconds=0.3)
    body = gateway._BodyUntil(call.body, call.not_after)
    assert len(body.read(65_536)) == 65_536
    while clock.now() < call.not_after:
        time.sleep(0.01)

    with pytest.raises(TimeoutError, match="deadline"):
        body.read(65_536)


def test_a_cancellation_of_the_async_gateway_goes_through_to_the_caller(serve):
    """Its outcome is unknown by the journal: the request has no outcome there."""
    server = serve(wire.never_answers)

    async def cancelled():
        async with openai.AsyncOpenAI(api_key=KEY, base_url=server.base_url) as client:
            task = asyncio.create_task(gateway.aperform(append(), client))
            assert await asyncio.to_thread(server.asked.wait, 5)
            task.cancel()
            await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
