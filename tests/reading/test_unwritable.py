"""What JSON can carry and Python reads, but cannot write again: an item of that kind breaks nothing."""

from __future__ import annotations

import json

import pytest

from convsessions import operations
from convsessions.states import WriteState
from tests.remote import wire

pytestmark = pytest.mark.django_db(transaction=True)


def nested(levels: int) -> bytes:
    return b'{"x":' * levels + b"1" + b"}" * levels


HOSTILE = {
    "numbers beyond floats": b'{"id": "tp_1", "type": "telepathy_call", "waves": [1e400, -1e999, 2.5]}',
    "940 levels": b'{"id": "tp_1", "type": "telepathy_call", "waves": %s}' % nested(940),
    "300 levels": b'{"id": "tp_1", "type": "telepathy_call", "waves": %s}' % nested(300),
}


@pytest.fixture(params=HOSTILE)
def hostile(request, monkeypatch):
    """A session whose remote history is one such item, which goes when it is deleted."""
    page = b'{"object":"list","data":[%s],"first_id":"tp_1","last_id":"tp_1","has_more":false}' % HOSTILE[request.param]

    def answer(connection) -> None:
        asked = connection.read_request()
        body = b'{"id":"conv_1","object":"conversation"}' if asked.method == "DELETE" else page
        connection.send(wire.reply(200, body))

    with wire.Server(answer) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield operations.create_session(conversation_id="conv_1")


def test_the_rest_api_passes_it_on(hostile, admin_client):
    for query in ("", "?latest=2"):
        response = admin_client.get(f"/api/sessions/{hostile.pk}/items/{query}")
        assert response.status_code == 200
        assert response.json()["data"][0]["id"] == "tp_1"


def test_it_can_be_exported(hostile):
    (text,) = operations.export_items(hostile.pk)
    assert json.loads(text)["type"] == "telepathy_call"


def test_it_can_be_popped(hostile):
    write = operations.pop_item(hostile.pk)
    operations.deliver(hostile.pk)
    write.refresh_from_db()
    assert (write.state, write.popped["id"]) == (WriteState.SAVED, "tp_1")


def test_what_python_can_write_stays(hostile, request):
    (item,) = operations.iter_items(hostile.pk)
    kept = {"numbers beyond floats": [None, None, 2.5], "300 levels": json.loads(nested(300))}
    name = request.node.callspec.params["hostile"]
    assert name not in kept or item["waves"] == kept[name]
