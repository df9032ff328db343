"""The same refusal on the sandbox, which names the item, and on agentic-api, by others, which does not."""

from __future__ import annotations

import pytest

from convsessions import operations
from convsessions.states import WriteState
from tests.histories import deliver_until_settled, messages, texts

pytestmark = pytest.mark.django_db(transaction=True)

GOOD = texts(messages(60))
REFUSED = {
    # Each API has its own idea of what it does not take; we let both through, for neither is ours to refuse.
    "sandbox": {"unheard_of": True},
    "agentic-api": {"status": "nonsense"},
}


@pytest.fixture(params=REFUSED)
def write_with_a_bad_item(request, monkeypatch, session):
    """Records 60 items, of which the API refuses number 37, under a policy; the settled write."""
    if request.param == "sandbox":
        request.getfixturevalue("sandbox")
    else:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", request.getfixturevalue("agentic_url"))

    def record(policy):
        items = messages(60)
        items[37] |= REFUSED[request.param]
        return deliver_until_settled(operations.append_items(session.pk, items, on_refusal=policy))

    return record


def remote(session):
    return texts(operations.get_latest_items(session.pk, 100)["data"])


def test_stop_stores_nothing_after_the_refused_item(session, write_with_a_bad_item):
    write = write_with_a_bad_item("stop")

    assert write.state == WriteState.REFUSED
    assert write.error_param.startswith("items[37]")
    # Where the API names the item, its whole request is left out; where halves had to find it, what is before it is in.
    assert write.items_saved in {20, 37}
    assert remote(session) == GOOD[: write.items_saved]


def test_skip_stores_everything_else(session, write_with_a_bad_item):
    write = write_with_a_bad_item("skip")

    assert (write.state, write.items_saved) == (WriteState.SAVED, 59)
    assert [one["item"] for one in write.skipped] == [37]
    assert remote(session) == GOOD[:37] + GOOD[38:]
    assert not operations.verify_session(session.pk)
