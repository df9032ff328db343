"""Reading requests: strict JSON, known fields only, whole numbers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from convsessions.exceptions import InvalidInput
from convsessions.items import paths

from .problems import Refusal

MAX_BODY_BYTES = 32 * 1024 * 1024
"""Bytes of a request body. A larger history is appended in several writes."""


class StrictJSONParser(BaseParser):
    """JSON as RFC 8259 has it: UTF-8, no NaN or Infinity, no name twice in an object.

    Every error is a 400 that quotes nothing of the body.
    """

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        request = (parser_context or {})["request"]
        if _declared_length(request) > MAX_BODY_BYTES:
            raise _too_large()
        body = stream.read(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            raise _too_large()
        return decode(body)


class AsciiJSONRenderer(JSONRenderer):
    """Escapes whatever is not ASCII: remote items may hold unpaired surrogates, which UTF-8 cannot carry."""

    ensure_ascii = True


def decode(body: bytes) -> Any:
    """The value of a JSON text. Raises Refusal."""
    # The refusal is raised outside the handlers: the errors that it stands for carry the body.
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_object)
    except UnicodeDecodeError:
        code, detail = "invalid_utf8", "The request body is not UTF-8."
    except RecursionError:
        code, detail = "too_deep", "The request body is nested too deeply."
    except json.JSONDecodeError as error:
        code, detail = "invalid_json", f"The request body is not JSON: line {error.lineno}, column {error.colno}."
    except ValueError:  # of int(): more digits than Python converts
        code, detail = "number_too_large", "The request body holds a number with too many digits."
    raise Refusal(400, code, detail)


def fields_of(request: Request, names: Iterable[str] = ()) -> dict[str, Any]:
    """The fields of the body, which is an object with no others than `names`; no body is an empty object."""
    body = request.data
    if not isinstance(body, Mapping):
        raise Refusal(422, "not_an_object", "The request body must be a JSON object.")
    known = frozenset(names)
    for name in body:
        if name not in known:
            detail = f"This request takes {', '.join(sorted(known)) or 'no fields'}."
            raise Refusal(422, "unknown_field", detail, field=paths.step(name))
    return dict(body)


def whole_number(request: Request, name: str, default: int) -> int:
    """The query parameter `name`. Raises InvalidInput unless it is written in at most nine ASCII digits."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidInput(name, "give a whole number")
    return int(text)


def one_of(request: Request, name: str, allowed: Iterable[str]) -> list[str]:
    """The values of the query parameter `name`, which may be repeated. Raises InvalidInput for one not allowed."""
    values, known = request.query_params.getlist(name), list(allowed)
    if not set(values) <= set(known):
        raise InvalidInput(name, f"choose from {', '.join(known)}", code="invalid_choice")
    return values


def _declared_length(request: Request) -> int:
    # A number, or DRF would not have called the parser; absent from a body in chunks.
    return int(request.META.get("CONTENT_LENGTH") or 0)


def _too_large() -> Refusal:
    return Refusal(413, "body_too_large", f"The request body is larger than {MAX_BODY_BYTES} bytes.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two values of one name, another reader of the same body (a gateway that checks it) may take the other."""
    found = dict(pairs)
    if len(found) < len(pairs):
        (name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise Refusal(
            400, "duplicate_name", "The request body holds an object with a name twice.", field=paths.step(name)
        )
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise Refusal(400, "not_finite", f"{name} is not JSON.")
