"""The outcome table of DESIGN.md §4: failures before a byte of the request was sent."""

from __future__ import annotations

import asyncio
import importlib
import socket
import threading

import openai
import pytest

from convsessions.remote import gateway

from . import wire
from .conftest import KEY, append
from .rows import NEVER_SENT, REFUSED, STORED, UNKNOWN, row

# The one on which this openai is built: httpx2 since 3.
httpx = importlib.import_module(openai.DefaultHttpxClient.__mro__[1].__module__)

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


# -- the same errors, raised after something was sent ----------------------------------------------------------------


class TriesAgain(httpx.HTTPTransport):
    """A transport of the host's that tries a request again on another machine, which is down."""

    def handle_request(self, request):
        super().handle_request(request).read()
        raise httpx.ConnectError("nobody is there")


class TriesAgainAsync(httpx.AsyncHTTPTransport):
    async def handle_async_request(self, request):
        response = await super().handle_async_request(request)
        await response.aread()
        raise httpx.ConnectError("nobody is there")


def test_an_error_of_the_hosts_client_after_the_request_was_sent_leaves_it_unknown(serve):
    server = serve(wire.answers(200, STORED))
    options = {"api_key": KEY, "base_url": server.base_url}
    with openai.OpenAI(**options, http_client=httpx.Client(transport=TriesAgain())) as client:
        outcome = gateway.perform(append(), client)

    async def asynchronously():
        http_client = httpx.AsyncClient(transport=TriesAgainAsync())
        async with openai.AsyncOpenAI(**options, http_client=http_client) as client:
            return await gateway.aperform(append(), client)

    assert [(row(one), one.code) for one in (outcome, asyncio.run(asynchronously()))] == [(UNKNOWN, "ConnectError")] * 2
    assert [request.body for request in server.requests] == [append().body] * 2
