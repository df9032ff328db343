"""Hands the table of operations to drf-spectacular."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiRequest, OpenApiResponse

from convsessions.api.endpoint import Endpoint
from convsessions.api.problems import CONTENT_TYPE

from . import parameters, shapes
from .operations import ALWAYS, OPERATIONS, Operation

JSON = "application/json"
TITLES = {
    400: "The body is not JSON, or cannot be read.",
    401: "Authentication is missing or wrong.",
    403: "The user may not do this.",
    404: "There is no such thing that the user may see.",
    406: "Only JSON is served.",
    409: "It contradicts what is recorded.",
    412: "The session has changed since.",
    413: "The body, or an item, is too large, or there are too many.",
    415: "Only JSON is taken.",
    422: "A field, parameter or header cannot be accepted; `field` names it.",
    429: "Too many requests.",
    502: "The Conversations API failed, or refuses this site.",
    503: "The Conversations API asks for patience; or the site lacks a key to what it stored (`content_unreadable`).",
    504: "The Conversations API did not answer in time.",
}
EXAMPLES = {
    409: ("key_taken", "this owner has a session with this key", ""),
    412: ("precondition_failed", "the session has changed since", ""),
    422: ("invalid_type", "must be of type string", "items[3].content[0].text"),
}


class Schema(AutoSchema):
    """Describes the views of this API, and only those, whatever the host's DEFAULT_SCHEMA_CLASS is."""

    @property
    def operation(self) -> Operation:
        assert isinstance(self.view, Endpoint)  # noqa: S101 - `describe` gives it to no other
        return OPERATIONS[self.view.url_name, self.method]

    def get_operation_id(self) -> str:
        return self.operation.id

    def get_summary(self) -> str:
        return self.operation.summary

    def get_tags(self) -> list[str]:
        return [self.operation.tag]

    def get_override_parameters(self) -> list[Any]:
        always = () if self.operation.tag == "health" else (parameters.PATIENCE, parameters.CHALLENGE)
        return [*self.operation.parameters, *always]

    def get_request_serializer(self) -> Any:
        operation = self.operation
        if operation.body is None:
            return None
        examples = [OpenApiExample("example", operation.example)] if operation.example else []
        return {JSON: OpenApiRequest(operation.body, examples=examples)}

    def get_response_serializers(self) -> Any:
        answers = {
            (status, JSON): OpenApiResponse(shape, description="Nothing has changed." if shape is None else "")
            for status, shape in self.operation.answers.items()
        }
        known = () if self.operation.tag == "health" else ALWAYS
        return answers | {
            (status, CONTENT_TYPE): _problem(status) for status in sorted({*known, *self.operation.problems})
        }

    def _is_list_view(self, serializer: Any = None) -> bool:
        return False


def _problem(status: int) -> OpenApiResponse:
    examples = []
    if status in EXAMPLES:
        code, detail, field = EXAMPLES[status]
        title = HTTPStatus(status).phrase
        body = {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code}
        examples.append(OpenApiExample(code, body | ({"field": field} if field else {})))
    return OpenApiResponse(shapes.Problem, description=TITLES[status], examples=examples)


def describe() -> None:
    """Have the views of this API described, now that drf-spectacular is there."""
    Endpoint.schema = Schema()
