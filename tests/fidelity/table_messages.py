"""Messages: roles, contents, ids and nulls."""

from __future__ import annotations

from typing import Any

from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from .rows import Arrives, RefusedByTheApi, answer, message, part


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def says(name: str, text: str) -> Arrives:
    return Arrives(name, user(text), stored=message("user", part(text)))


HELLO = message("user", part("hello"))
URL = "https://example.org/a.png"
IMAGE = {"type": "input_image", "image_url": URL}
CITED = [{"type": "url_citation", "url": URL, "title": "t", "start_index": 0, "end_index": 1}]
LOGPROBS = [{"token": "x", "bytes": [120], "logprob": -0.5, "top_logprobs": []}]

MESSAGES = [
    Arrives("text", user("hello"), stored=HELLO),
    Arrives("text, with a type", {"type": "message", **user("hello")}, stored=HELLO),
    Arrives("one part", user([part("hello")]), stored=HELLO),
    Arrives("two parts", user([part("a"), part("b")]), stored=message("user", part("a"), part("b"))),
    Arrives("no parts", user([]), stored=message("user")),
    Arrives("an id of the API", user("hello", id="msg_1"), sent=user("hello"), stored=HELLO),
    Arrives("an id of nobody's", user("hello", id="mine"), sent=user("hello"), stored=HELLO),
    Arrives("an id of 65 characters", user("hello", id="msg_" + "a" * 61), sent=user("hello"), stored=HELLO),
    Arrives("a placeholder for an id", user("hello", id="__fake_id__"), sent=user("hello"), stored=HELLO),
    Arrives("a null for an id", user("hello", id=None), sent=user("hello"), stored=HELLO),
    Arrives("a null status", user("hello", status=None), sent=user("hello"), stored=HELLO),
    Arrives("a null type", user("hello", type=None), sent=user("hello"), stored=HELLO),
    Arrives("a null phase", user("hello", phase=None), sent=user("hello"), stored=HELLO),
    Arrives("a status", user("hello", status="completed"), stored=HELLO),
    Arrives("another status", user("hello", status="incomplete"), stored={**HELLO, "status": "incomplete"}),
    Arrives("private fields", user("hello", provider_data={"a": 1}, created_by="u"), sent=user("hello"), stored=HELLO),
    Arrives("notes of the Agents SDK", user("hello", _agents_tool="t"), sent=user("hello"), stored=HELLO),
    Arrives(
        "private fields of a part", user([part("hello", provider_data={})]), sent=user([part("hello")]), stored=HELLO
    ),
    says("empty text", ""),
    says("a space", " "),
    says("U+0000", "a\x00b\x00"),
    says("what looks like an escape", "\\u0000 \\n \\\\ \\ud83d"),
    says("what looks like JSON", '"}]},{"role":"user","content":"x"}'),
    says("control characters", "\x01\x08\x1b\x7f\x9f\r\n\t\v\f"),
    says("combining marks", "e\u0301 Z\u0351\u036b\u0343"),
    says("the same, precomposed", "\u00e9"),
    says("compatibility forms", "\ufb01 \u2460 \uff21 \u212b"),
    says("outside the first plane", "\U0001f600 \U00020000 \U0010ffff"),
    says("joined emoji", "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f3f3\ufe0f\u200d\U0001f308"),
    says("both directions", "\u05e9\u05dc\u05d5\u05dd \u202eabc\u202c \u2067x\u2069"),
    says("no characters", "\ufffe\uffff\ufdd0\U0001ffff"),
    says("line separators and a mark of byte order", "\u2028\u2029\ufeff\u0085"),
    says("private use and unassigned", "\ue000\U000f0000\u0378"),
    says("quotes of databases", "' OR 1=1 -- %s %(x)s \\' ` ; DROP"),
    says("a hundred thousand characters of four bytes", "\U0001f600" * 100_000),
    Arrives("an image by URL", user([IMAGE]), stored=message("user", {**IMAGE, "detail": "auto"})),
    Arrives(
        "an image by file, with nulls",
        user([{"type": "input_image", "detail": "low", "file_id": "file_1", "image_url": None}]),
        sent=user([{"type": "input_image", "detail": "low", "file_id": "file_1"}]),
        stored=message("user", {"type": "input_image", "detail": "low", "file_id": "file_1"}),
    ),
    Arrives(
        "a file by id",
        user([{"type": "input_file", "file_id": "file_1"}]),
        stored=message("user", {"type": "input_file", "file_id": "file_1"}),
    ),
    Arrives(
        "a file with its data",
        user([{"type": "input_file", "filename": "é.txt", "file_data": "data:text/plain;base64,AAA="}, part("look")]),
        stored=message(
            "user",
            {"type": "input_file", "filename": "é.txt", "file_data": "data:text/plain;base64,AAA="},
            part("look"),
        ),
    ),
    Arrives("system", {"role": "system", "content": "x"}, stored=message("system", part("x"))),
    Arrives("developer", {"role": "developer", "content": [part("x")]}, stored=message("developer", part("x"))),
    Arrives("assistant", {"role": "assistant", "content": "x"}, stored=message("assistant", answer("x"))),
    Arrives(
        "assistant, in a part",
        {"role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
        stored=message("assistant", answer("x")),
    ),
    Arrives(
        "annotations",
        {"role": "assistant", "content": [answer("x", annotations=CITED)]},
        stored=message("assistant", answer("x", annotations=CITED)),
    ),
    Arrives(
        "log probabilities",
        {"role": "assistant", "content": [answer("x", logprobs=LOGPROBS)]},
        stored=message("assistant", answer("x", logprobs=LOGPROBS)),
    ),
    Arrives(
        "a refusal",
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        stored=message("assistant", {"type": "refusal", "refusal": "no"}),
    ),
    Arrives(
        "a phase, which reading loses",
        {"role": "assistant", "content": "x", "phase": "commentary"},
        stored=message("assistant", answer("x"), phase="commentary"),
        back=message("assistant", answer("x")),
    ),
    Arrives(
        "a model of the client",
        ResponseOutputMessage(
            id="msg_1",
            type="message",
            role="assistant",
            status="completed",
            content=[ResponseOutputText(type="output_text", text="x", annotations=[])],
        ),
        sent={
            "content": [{"annotations": [], "text": "x", "type": "output_text"}],
            "role": "assistant",
            "status": "completed",
            "type": "message",
        },
        stored=message("assistant", answer("x")),
    ),
    RefusedByTheApi("a field that no message has", user("x", tone="kind"), "items[0].tone", "unknown_parameter"),
    RefusedByTheApi(
        "a part of the assistant's from the user",
        user([{"type": "output_text", "text": "x"}]),
        "items[0].content[0].type",
        "invalid_value",
    ),
    RefusedByTheApi(
        "a part that nobody knows", user([{"type": "input_smell"}]), "items[0].content[0].type", "invalid_value"
    ),
]
