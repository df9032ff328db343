"""The outcome table of DESIGN.md §4, row by row: the fault is made at the wire, the client is the real one."""

from __future__ import annotations

import asyncio
import datetime as dt
import socket
import threading
import time
from email.utils import format_datetime

import openai
import pytest

from convsessions.remote import clock, gateway
from convsessions.remote.calls import CreateConversation
from convsessions.remote.outcomes import Then
from convsessions.states import HoldCode, OutcomeKind

try:
    import httpx2 as httpx  # of openai 3
except ImportError:
    import httpx  # of openai 2

from . import wire
from .conftest import KEY, append, delete_conversation, delete_item, list_items, stored, within

STORED = stored("msg_1", "msg_2")
APPLIED = (OutcomeKind.APPLIED, Then.PROCEED, HoldCode.NONE)
UNKNOWN = (OutcomeKind.UNKNOWN, Then.RECONCILE, HoldCode.NONE)
REFUSED = (OutcomeKind.NOT_APPLIED, Then.REFUSE, HoldCode.NONE)
NEVER_SENT = (OutcomeKind.NOT_APPLIED, Then.RETRY, HoldCode.UNREACHABLE)


def row(outcome):
    return outcome.kind, outcome.then, outcome.hold


def held(code):
    return OutcomeKind.NOT_APPLIED, Then.HOLD, code


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


# -- failure before anything was sent --------------------------------------------------------------------------------


def test_a_refused_connection_sent_nothing(perform):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        outcome = perform(append(), f"http://127.0.0.1:{taken.getsockname()[1]}/v1")

    assert (row(outcome), outcome.code) == (NEVER_SENT, "ConnectError")


def test_a_name_that_does_not_resolve_sent_nothing(perform, monkeypatch):
    def no_such_name(*args, **kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_name)  # a test must not ask a real resolver
    outcome = perform(append(), "http://name.invalid/v1")

    assert (row(outcome), outcome.code) == (NEVER_SENT, "ConnectError")


def test_a_certificate_that_nobody_trusts_sent_nothing(perform, serve):
    server = serve(wire.answers(200, STORED), tls=True)

    outcome = perform(append(), server.base_url)

    assert (row(outcome), outcome.code, server.requests) == (NEVER_SENT, "ConnectError", [])


def test_a_server_that_does_not_speak_tls_sent_nothing(perform, serve):
    server = serve(wire.closes_at_once)

    outcome = perform(append(), server.base_url.replace("http:", "https:"))

    assert (row(outcome), outcome.code) == (NEVER_SENT, "ConnectError")


def test_a_tls_handshake_that_never_ends_sent_nothing_and_says_so_before_the_deadline(perform, serve):
    server = serve(wire.never_reads)

    outcome = perform(append(seconds=1.0), server.base_url.replace("http:", "https:"))

    assert (row(outcome), outcome.code) == (NEVER_SENT, "ConnectTimeout")


def test_waiting_for_a_free_connection_of_the_pool_sent_nothing_and_says_so_before_the_deadline(serve):
    server = serve(wire.never_answers)
    one_connection = openai.DefaultHttpxClient(limits=httpx.Limits(max_connections=1))
    with openai.OpenAI(api_key=KEY, base_url=server.base_url, http_client=one_connection) as client:
        blocker = threading.Thread(target=gateway.perform, args=(append(seconds=2.0), client))
        blocker.start()
        assert server.asked.wait(5)
        outcome = gateway.perform(append(seconds=1.0), client)
        server.__exit__(None, None, None)
        blocker.join()

    assert (row(outcome), outcome.code, len(server.requests)) == (NEVER_SENT, "PoolTimeout", 1)


@pytest.mark.parametrize("base_url", ["127.0.0.1/v1", "ftp://127.0.0.1/v1"])
def test_a_base_url_that_is_no_http_address_sent_nothing(perform, base_url):
    outcome = perform(append(), base_url)

    assert row(outcome) == NEVER_SENT


def test_a_proxy_that_opens_no_tunnel_sent_nothing(perform, serve, monkeypatch):
    proxy = serve(wire.sends_then(wire.reply(502, b""), lambda connection: connection.socket.close()))
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("NO_PROXY", "")

    outcome = perform(append(), "https://api.invalid/v1")

    assert (row(outcome), outcome.code) == (NEVER_SENT, "ProxyError")
    assert [request.method for request in proxy.requests] == ["CONNECT"]


def test_a_body_that_cannot_be_encoded_is_refused_and_nothing_is_sent(perform, serve):
    server = serve(wire.answers(200, STORED))

    outcome = perform(append(payload='["half a pair: \ud800"]', count=1), server.base_url)

    assert (row(outcome), outcome.code, server.connections) == (REFUSED, "unencodable", 0)


def test_after_the_deadline_nothing_is_sent(perform, serve):
    server = serve(wire.answers(200, STORED))

    outcome = perform(append(seconds=0.0), server.base_url)

    assert (row(outcome), outcome.code, server.connections) == (NEVER_SENT, "deadline_passed_before_sending", 0)


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
    "an error object with 200": (wire.fails(200, "server_error"), "no_item_list"),
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
