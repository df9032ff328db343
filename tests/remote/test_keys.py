"""A key that is missing, or that no header can carry, is something a person has to mend: nothing was sent."""

from __future__ import annotations

import openai
import pytest

from convsessions.delivery import drivers
from convsessions.models import ConversationSession
from convsessions.remote.outcomes import Then
from convsessions.states import HoldCode, OutcomeKind

from . import wire
from .conftest import append, list_items, stored

BAD_KEY = (OutcomeKind.NOT_APPLIED, Then.HOLD, HoldCode.BAD_KEY)


def row(outcome):
    return outcome.kind, outcome.then, outcome.hold


def no_key(session):
    raise RuntimeError("tenant 7 has no key; the last one was sk-the-secret-key")


def retrying(session):
    return openai.OpenAI(api_key="sk-test", base_url=session.key, max_retries=5)


@pytest.mark.parametrize("key", ["sk-the-secret-key\n", "sk-the-secret-kéy"])
def test_a_key_that_no_header_can_carry_is_held_for_a_person(perform, serve, key):
    server = serve(wire.answers(200, stored("msg_1", "msg_2")))

    outcome = perform(append(), server.base_url, api_key=key)

    assert (row(outcome), server.requests) == (BAD_KEY, [])
    assert "secret" not in repr(outcome)


def test_a_client_factory_that_raises_is_held_for_a_person_and_its_message_is_not_kept(quick):
    quick["CLIENT_FACTORY"] = f"{__name__}.no_key"

    outcome = drivers.read(ConversationSession(), lambda not_after: list_items())

    assert (row(outcome), outcome.code) == (BAD_KEY, "no_client_RuntimeError")
    assert "secret" not in repr(outcome)


def test_a_client_factory_that_cannot_be_imported_is_held_for_a_person(quick):
    quick["CLIENT_FACTORY"] = "no.such.factory"

    outcome = drivers.read(ConversationSession(), lambda not_after: list_items())

    assert (row(outcome), outcome.code) == (BAD_KEY, "no_client_ModuleNotFoundError")


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_a_client_that_would_send_again_by_itself_sends_once(quick, serve, status):
    quick["CLIENT_FACTORY"] = f"{__name__}.retrying"
    server = serve(wire.fails(status, x_should_retry="true"))

    outcome = drivers.read(ConversationSession(key=server.base_url), lambda not_after: list_items())

    assert (outcome.status, len(server.requests)) == (status, 1)
