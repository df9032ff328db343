"""Lists that are behind: of a server that does not show the newest, or still shows what was deleted."""

from __future__ import annotations

import json

import openai
import pytest

from convsessions import operations
from convsessions.states import Resolution, Verdict, WriteState
from tests.histories import append, deliver_until_settled, messages, remote_texts, texts
from tests.remote import wire

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("hidden", [1, 2, 5])
def test_a_pop_after_a_resolution_takes_the_newest_item_though_the_list_is_behind(sandbox, session, hidden):
    deliver_until_settled(append(session, 3))
    sandbox.fault("twice", lost=True)
    write = deliver_until_settled(append(session, 2, start=3))
    assert write.error_code == Verdict.DUPLICATED
    operations.resolve_write(write.pk, Resolution.REMOVE_DUPLICATES, reason="twice")
    deliver_until_settled(write)

    sandbox.fault("stale_read", operation="list_items", count=hidden)
    pop = deliver_until_settled(operations.pop_item(session.pk))

    assert texts([pop.popped]) == ["m4"]
    assert remote_texts(sandbox, session) == texts(messages(4))


class Replica:
    """A server whose lists go on showing `items`, deleted or not; `more`: and say that there are more."""

    def __init__(self, items, *, more: bool) -> None:
        self.page = {"object": "list", "data": items, "first_id": None, "last_id": None, "has_more": more}
        self.deleted: list[str] = []
        self.lists = 0

    def __call__(self, connection: wire.Connection) -> None:
        asked = connection.read_request()
        if asked.method == "GET":
            self.lists += 1
            connection.send(wire.reply(200, json.dumps(self.page).encode()))
            return
        self.deleted.append(asked.path.split("?")[0].rpartition("/")[2])
        connection.send(wire.reply(200, b'{"id": "conv_1", "object": "conversation"}'))


def erased_on(replica: Replica, session):
    write = operations.clear_session(session.pk, erase=True)
    with wire.Server(replica) as server, openai.OpenAI(base_url=server.base_url, max_retries=0) as client:
        operations.deliver(session.pk, client=client)
    write.refresh_from_db()
    return write


@pytest.fixture
def listed(sandbox, session):
    """What the list of the session's conversation shows: three items."""
    deliver_until_settled(append(session, 3))
    session.refresh_from_db()
    return sandbox.items(session.conversation_id)


def test_an_erasure_ends_though_the_list_goes_on_showing_what_was_deleted(session, listed):
    replica = Replica(listed, more=False)
    write = erased_on(replica, session)

    assert (write.state, write.items_saved, write.items_total) == (WriteState.SAVED, 3, 3)
    ids = [item["id"] for item in listed]
    assert replica.deleted[:3] == ids
    assert len(replica.deleted) == 4  # the last one is the conversation
    assert (
        replica.lists == 5
    )  # what is there, and then three looks more with pauses between them, before it is believed


def test_an_erasure_that_cannot_see_what_comes_after_what_was_deleted_asks_a_person(session, listed):
    replica = Replica(listed, more=True)
    write = erased_on(replica, session)

    assert (write.state, write.items_saved) == (WriteState.AMBIGUOUS, 3)
    assert len(replica.deleted) == 3
