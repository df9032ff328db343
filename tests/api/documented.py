"""Compares answers with the OpenAPI document: their status, headers, content type and shape."""

from __future__ import annotations

import functools
import re
from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.generators import SchemaGenerator
from openapi_schema_validator import OAS30ReadValidator

PREFIX = "/api/"


@functools.cache
def document() -> dict[str, Any]:
    """The document of the site in project/, as it is served."""
    generated: dict[str, Any] = SchemaGenerator(urlconf="project.urls").get_schema(request=None, public=True)
    return generated


@functools.cache
def operations() -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (path, method): operation
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
        if method != "parameters"
    }


def operation_of(path: str, method: str) -> dict[str, Any] | None:
    for (template, known), operation in operations().items():
        if known == method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]*", template), path):
            return operation
    return None


def check(path: str, method: str, response: HttpResponseBase) -> None:
    """Fail unless the answer to `method` on `path` is one that the document describes."""
    operation = operation_of(path, method.lower())
    if operation is None:
        assert response.status_code in {401, 403, 405}, f"{method} {path} is not documented"
        return
    where = f"{operation['operationId']} {response.status_code}"
    answers = operation["responses"]
    assert str(response.status_code) in answers, f"{where} is not documented"
    answer = answers[str(response.status_code)]
    for name, header in answer.get("headers", {}).items():
        assert name in response or not header.get("required"), f"{where} lacks {name}"
    _check_body(answer, response, where)


def _check_body(answer: dict[str, Any], response: Any, where: str) -> None:
    if "content" not in answer:
        assert not response.content, where
        return
    [(content_type, content)] = answer["content"].items()
    assert response["Content-Type"].split(";")[0] == content_type, where
    schema = {**content["schema"], "components": document()["components"]}
    found = OAS30ReadValidator(schema).iter_errors(response.json())
    errors = [f"{error.json_path}: {error.message}" for error in found]
    assert not errors, (where, errors)
    _check_names(content["schema"], response.json(), where)


def _check_names(schema: dict[str, Any], body: dict[str, Any], where: str) -> None:
    shape = document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    assert set(body) <= set(shape["properties"]), where
