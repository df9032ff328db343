"""One table of what a Conversations API does, as WIRE.md records it of the real one; run on every server we have.

A case asks a server something through the real client and says what it saw, in a form that is the same whatever ids a
server gives. `expected` is what the real API does; `deviations` what another server is known to do instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from openai import APIStatusError, OpenAI

Seen = Any


@dataclass(frozen=True)
class Case:
    name: str
    look: Callable[[Api], Seen]
    expected: Seen
    source: str
    deviations: Mapping[str, Seen] = field(default_factory=dict)


class Api:
    """Raw requests to a conversation of its own, and answers without what differs between servers by nature."""

    def __init__(self, client: OpenAI) -> None:
        self.client = client
        self.id = self.post("/conversations", {})["id"]

    def post(self, path: str, body: Any) -> Any:
        return self.client.post(path, body=body, cast_to=object)

    def append(self, *items: Any) -> Any:
        return self.post(f"/conversations/{self.id}/items", {"items": list(items)})

    def list(self, conversation: str | None = None, **query: Any) -> Any:
        path = f"/conversations/{conversation or self.id}/items"
        return self.client.get(path, cast_to=object, options={"params": query})

    def delete(self, path: str = "") -> Any:
        return self.client.delete(f"/conversations/{self.id}{path}", cast_to=object)

    def texts(self, **query: Any) -> list[str]:
        return [item["content"][0]["text"] for item in self.list(**query)["data"]]

    def refused(self, request: Callable[[], Any]) -> tuple[int, str | None, str | None]:
        """Status, code and param of the error that `request` meets."""
        try:
            request()
        except APIStatusError as error:
            return error.status_code, error.code, error.param
        return 200, None, None


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text, **more}


def numbered(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [user(str(start + at)) for at in range(count)]


def shown(item: dict[str, Any]) -> dict[str, Any]:
    """`item` with the prefix of its id in place of the id."""
    return {**item, "id": item["id"].split("_")[0]}


def one(api: Api, item: dict[str, Any]) -> dict[str, Any]:
    """`item` as it is listed after it was appended."""
    api.append(item)
    return shown(api.list()["data"][0])


def empty(api: Api) -> Seen:
    return api.list()


def batch(api: Api) -> Seen:
    reply = api.append(*numbered(3))
    ids = [item["id"] for item in reply["data"]]
    rest = {key: value for key, value in reply.items() if key != "data"}
    rest = {key: ids.index(value) if value in ids else value for key, value in rest.items()}
    return [item["content"][0]["text"] for item in reply["data"]], rest


def order(api: Api) -> Seen:
    api.append(*numbered(20))
    api.append(*numbered(5, 20))
    return api.texts(order="asc", limit=100), api.texts(), api.texts(limit=2)


def cursors(api: Api) -> Seen:
    ids = [item["id"] for item in api.append(*numbered(4))["data"]]
    up = api.list(order="asc", after=ids[1], limit=1)
    down = api.list(order="desc", after=ids[1], limit=1)
    end = api.list(order="asc", after=ids[3])
    return [([ids.index(item["id"]) for item in page["data"]], page["has_more"]) for page in (up, down, end)]


def atomic(api: Api) -> Seen:
    refused = api.refused(lambda: api.append(user("a"), {"type": "nonsense"}))
    return refused[0], api.texts()


def too_many(api: Api) -> Seen:
    return api.refused(lambda: api.append(*numbered(21)))[0], len(api.list(limit=100)["data"])


def limit_101(api: Api) -> Seen:
    return api.refused(lambda: api.list(limit=101))


def same_content_twice(api: Api) -> Seen:
    api.append(user("x"))
    api.append(user("x"))
    return api.texts()


def own_ids(api: Api) -> Seen:
    given = api.append(user("x", id="msg_ours"))["data"][0]["id"]
    return given == "msg_ours"


def linked(api: Api) -> Seen:
    """An id of another conversation's item links the original."""
    original = api.append(user("original"))["data"][0]
    other = api.post("/conversations", {})["id"]
    api.post(f"/conversations/{other}/items", {"items": [user("changed", id=original["id"])]})
    stored = api.list(other)["data"][0]
    return stored["content"][0]["text"], stored["id"] == original["id"]


def again(api: Api) -> Seen:
    """An id that is in this conversation already."""
    original = api.append(user("original"))["data"][0]
    refused = api.refused(lambda: api.append(user("changed", id=original["id"])))
    return refused, api.texts()


def deleted_item(api: Api) -> Seen:
    ids = [item["id"] for item in api.append(*numbered(3))["data"]]
    api.delete(f"/items/{ids[1]}")
    twice = api.refused(lambda: api.delete(f"/items/{ids[1]}"))
    return api.texts(order="asc"), twice[0]


def deleted_cursor(api: Api) -> Seen:
    ids = [item["id"] for item in api.append(*numbered(3))["data"]]
    api.delete(f"/items/{ids[1]}")
    status, _, param = api.refused(lambda: api.list(order="asc", after=ids[1]))
    return status, param


def deleted_conversation(api: Api) -> Seen:
    reply = api.delete()
    read = api.refused(api.list)[0]
    append = api.refused(lambda: api.append(user("x")))[0]
    return {**reply, "id": reply["id"] == api.id}, read, append, api.refused(api.delete)[0]


def metadata(api: Api) -> Seen:
    api.post(f"/conversations/{api.id}", {"metadata": {"a": "1"}})
    return api.post(f"/conversations/{api.id}", {"metadata": {"b": "2"}})["metadata"]


def bad_json(api: Api) -> Seen:
    path = f"/conversations/{api.id}/items"
    return api.refused(lambda: api.client.post(path, content=b'{"items": [', cast_to=object))[:2]


def exact(text: str) -> Callable[[Api], Seen]:
    def look(api: Api) -> Seen:
        api.append(user(text))
        return api.texts() == [text]

    return look


def image(include: list[str]) -> Callable[[Api], Seen]:
    def look(api: Api) -> Seen:
        part = {"type": "input_image", "detail": "auto", "image_url": "https://example.org/a"}
        api.append({"role": "user", "content": [part]})
        query = {"include": include} if include else {}
        answer: list[Any] = []
        status = api.refused(lambda: answer.append(api.list(**query)))[0]
        return answer[0]["data"][0]["content"][0].get("image_url") if status == 200 else status

    return look
