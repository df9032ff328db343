from __future__ import annotations

import re

import pytest
from openai import AuthenticationError, BadRequestError, NotFoundError, OpenAI

from convsessions.sandbox.testing import SandboxProcess

from .conftest import raw, texts, user


def test_a_new_conversation_has_an_id_of_48_hex_digits_and_shows_no_items(client: OpenAI) -> None:
    created = client.conversations.create(metadata={"topic": "test"}, items=[user()])

    assert re.fullmatch(r"conv_[0-9a-f]{48}", created.id)
    assert raw(created) == {
        "id": created.id,
        "object": "conversation",
        "created_at": created.created_at,
        "metadata": {"topic": "test"},
    }


def test_an_empty_list_of_items_creates_an_empty_conversation(client: OpenAI, sandbox: SandboxProcess) -> None:
    created = client.conversations.create(items=[])

    assert sandbox.items(created.id) == []
    assert created.metadata == {}


def test_metadata_is_replaced_as_a_whole(client: OpenAI) -> None:
    created = client.conversations.create(metadata={"a": "1", "b": "2"})

    updated = client.conversations.update(created.id, metadata={"c": "3"})

    assert updated.metadata == {"c": "3"}
    assert raw(client.conversations.retrieve(created.id)) == raw(updated)


@pytest.mark.parametrize(
    "metadata",
    [{str(n): "" for n in range(17)}, {"k" * 65: ""}, {"k": "v" * 513}, {"k": 1}],
    ids=["17 pairs", "long key", "long value", "number"],
)
def test_metadata_beyond_the_limits_is_refused(client: OpenAI, metadata: dict[str, str]) -> None:
    with pytest.raises(BadRequestError) as refused:
        client.conversations.create(metadata=metadata)

    assert refused.value.param == "metadata"


def test_deleting_ends_the_conversation_but_not_its_items(client: OpenAI, sandbox: SandboxProcess) -> None:
    created = client.conversations.create(items=[user("kept")])

    deleted = client.conversations.delete(created.id)

    assert raw(deleted) == {"id": created.id, "object": "conversation.deleted", "deleted": True}
    truth = sandbox.conversation(created.id)
    assert (truth["deleted"], texts(truth["items"])) == (True, ["kept"])


def test_everything_on_a_deleted_conversation_is_404_without_param_and_code(client: OpenAI) -> None:
    created = client.conversations.create(items=[user()])
    client.conversations.delete(created.id)

    for request in (
        lambda: client.conversations.delete(created.id),
        lambda: client.conversations.retrieve(created.id),
        lambda: client.conversations.update(created.id, metadata={}),
        lambda: client.conversations.items.create(created.id, items=[user()]),
        lambda: client.conversations.items.list(created.id),
        lambda: client.conversations.items.retrieve("msg_1", conversation_id=created.id),
        lambda: client.conversations.items.delete("msg_1", conversation_id=created.id),
    ):
        with pytest.raises(NotFoundError) as missing:
            request()
        assert (missing.value.param, missing.value.code) == (None, None)


@pytest.mark.parametrize("conversation_id", ["conv_0", "conv_%00", "conv_" + "a" * 100])
def test_an_id_that_cannot_be_one_is_404(client: OpenAI, conversation_id: str) -> None:
    with pytest.raises(NotFoundError):
        client.conversations.items.list(conversation_id)


@pytest.mark.parametrize("header", ["Bearer", "Basic x", ""])
def test_a_request_without_a_key_is_401(client: OpenAI, header: str) -> None:
    with pytest.raises(AuthenticationError) as refused:
        client.conversations.create(extra_headers={"Authorization": header})

    assert refused.value.code == "invalid_api_key"


def test_every_answer_has_a_request_id_of_its_own(client: OpenAI, sandbox: SandboxProcess) -> None:
    first = client.conversations.with_raw_response.create().headers["x-request-id"]
    with pytest.raises(NotFoundError) as missing:
        client.conversations.retrieve("conv_0")

    assert [first, missing.value.request_id] == [row["request_id"] for row in sandbox.requests()]
    assert len({first, missing.value.request_id}) == 2


def test_other_addresses_answer_the_json_of_the_api(client: OpenAI, sandbox: SandboxProcess) -> None:
    with pytest.raises(NotFoundError) as missing:
        client.models.list()

    assert missing.value.code == "unknown_url"
    with pytest.raises(NotFoundError) as outside:
        client.get(sandbox.base_url.removesuffix("/v1") + "/admin/", cast_to=object)
    assert outside.value.code == "unknown_url"
