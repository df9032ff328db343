"""`include`: what the API hides is asked for, and a server that knows no `include` is read without it."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from convsessions.remote.calls import INCLUDE
from convsessions.remote.outcomes import Then
from convsessions.states import OutcomeKind

from . import wire
from .conftest import append, list_items, stored

PAGE = stored("msg_1", "msg_2")
NO_SUCH_THING = {"error": {"message": "unknown field include", "type": "invalid_request_error"}}
"""As agentic-api 0.9 answers: an error without a code."""
BAD_CURSOR = {"error": {"message": "?", "code": "invalid_value", "param": "include[7]"}}


def included(request) -> list[str]:
    """Everything that a request asks for, as arrays are written in the query of this API."""
    return parse_qs(urlsplit(request.path).query).get("include[]", [])


@pytest.mark.parametrize("call", [list_items, append], ids=["list", "append"])
def test_all_that_the_api_hides_is_asked_for(perform, serve, call):
    server = serve(wire.answers(200, PAGE))

    perform(call(), server.base_url)

    assert included(server.requests[0]) == list(INCLUDE)


def test_a_list_that_was_answered_400_without_a_code_is_repeated_without_include(perform, serve):
    server = serve(wire.answers(400, NO_SUCH_THING), wire.answers(200, PAGE))

    outcome = perform(list_items(after="msg_0"), server.base_url)

    assert (outcome.kind, outcome.ids) == (OutcomeKind.APPLIED, ["msg_1", "msg_2"])
    first, second = server.requests
    assert (included(first), included(second)) == (list(INCLUDE), [])
    rest = [{**parse_qs(urlsplit(request.path).query)} for request in server.requests]
    rest[0].pop("include[]")
    assert rest[0] == rest[1] == {"order": ["asc"], "limit": ["100"], "after": ["msg_0"]}


def test_it_is_repeated_once_only(perform, serve):
    server = serve(wire.answers(400, NO_SUCH_THING), wire.answers(400, NO_SUCH_THING))

    outcome = perform(list_items(), server.base_url)

    assert (outcome.kind, outcome.code, len(server.requests)) == (OutcomeKind.NOT_APPLIED, "http_400", 2)


def test_a_400_of_the_api_itself_is_not_repeated(perform, serve):
    """It has a code: what is hidden must not look absent because of another mistake."""
    server = serve(wire.answers(400, BAD_CURSOR), wire.answers(200, PAGE))

    outcome = perform(list_items(), server.base_url)

    assert (outcome.kind, outcome.code, len(server.requests)) == (OutcomeKind.NOT_APPLIED, "invalid_value", 1)


@pytest.mark.parametrize("status", [404, 422, 500])
def test_another_status_is_not_repeated(perform, serve, status):
    server = serve(wire.answers(status, NO_SUCH_THING), wire.answers(200, PAGE))

    perform(list_items(), server.base_url)

    assert len(server.requests) == 1


def test_an_append_is_never_repeated(perform, serve):
    server = serve(wire.answers(400, NO_SUCH_THING), wire.answers(200, PAGE))

    outcome = perform(append(), server.base_url)

    assert (outcome.then, len(server.requests)) == (Then.REFUSE, 1)


def test_a_list_that_asked_for_nothing_is_not_repeated(perform, serve):
    server = serve(wire.answers(400, NO_SUCH_THING), wire.answers(200, PAGE))

    outcome = perform(list_items(include=()), server.base_url)

    assert (outcome.kind, len(server.requests)) == (OutcomeKind.NOT_APPLIED, 1)
