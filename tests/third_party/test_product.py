"""The whole product on servers by others: delivery, reading, pops, clears, adoption, import and export."""

from __future__ import annotations

import os

import pytest

from convsessions import operations
from convsessions.states import WriteState
from tests.histories import append, deliver_until_settled, messages, texts
from tests.transcripts.commands import jsonl, run

from .losing import LosingProxy
from .table import CALL, OUTPUT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("server")]


@pytest.fixture(autouse=True)
def patient(quick):
    quick["REQUEST_TIMEOUT"] = 10.0


def history(session):
    return texts(operations.iter_items(session.pk))


def test_a_long_write_arrives_in_order_and_is_verified(session):
    write = deliver_until_settled(append(session, 130))

    assert (write.state, write.items_saved) == (WriteState.SAVED, 130)
    assert history(session) == texts(messages(130))
    drift = operations.verify_session(session.pk)
    assert (bool(drift), drift.checked, drift.foreign) == (False, 130, [])


def test_the_newest_items_are_read_over_pages(session):
    deliver_until_settled(append(session, 130))

    newest = operations.get_latest_items(session.pk, 101)

    assert (texts(newest["data"]), newest["has_more"]) == (texts(messages(130))[-101:], True)


def test_a_pop_removes_the_newest_item_and_a_clear_all_of_them(session):
    deliver_until_settled(append(session, 25))

    popped = deliver_until_settled(operations.pop_item(session.pk)).popped
    assert (texts([popped]), history(session)) == (["m24"], texts(messages(24)))

    deliver_until_settled(operations.clear_session(session.pk))
    deliver_until_settled(append(session, 2, prefix="new"))
    assert history(session) == ["new0", "new1"]


def test_calls_and_answers_are_recognised_as_the_server_lists_them(session):
    items = [
        {"role": "user", "content": "é\u202e\U0001f600 \x00 \\u0000"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "x", "annotations": []}], "id": "msg_ours"},
        CALL,
        OUTPUT,
        {"role": "assistant", "content": "done"},
    ]

    write = deliver_until_settled(operations.append_items(session.pk, items))

    assert write.state == WriteState.SAVED
    assert not operations.verify_session(session.pk)


def test_what_is_imported_is_exported_byte_for_byte(session, tmp_path):
    given = jsonl([*messages(60), CALL, OUTPUT, {"id": "msg_1", "role": "user", "content": "é", "status": None}])
    source = tmp_path / "in.jsonl"
    source.write_bytes(given)

    run("import_items", source, "--session", session.pk, "--batch", "25")
    operations.deliver(session.pk)

    assert run("export_items", "--session", session.pk).encode() == given


def test_a_write_whose_reply_was_lost_is_found_in_the_history(session, quick):
    """The server saves the items, but its reply is thrown away: what became of the request is read."""
    deliver_until_settled(append(session, 1))
    write = append(session, 40, start=1)

    with LosingProxy(os.environ["OPENAI_BASE_URL"]) as proxy, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", proxy.base_url)
        write = deliver_until_settled(write)

    assert proxy.lost == 2
    assert (write.state, write.items_saved) == (WriteState.SAVED, 40)
    assert history(session) == texts(messages(41))
