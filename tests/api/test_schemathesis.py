"""Requests of all kinds, made from the OpenAPI document: every answer is one that the document describes."""

from __future__ import annotations

import base64
import collections
import itertools

import pytest
import schemathesis
from django.contrib.auth import get_user_model
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from convsessions import operations
from convsessions.models import WriteIntent

from .conftest import message
from .documented import document
from .documented import operations as documented_operations

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 20


@pytest.fixture(scope="module")
def described():
    schema = schemathesis.openapi.from_dict(document())
    schema.app = get_wsgi_application()
    return schema


@pytest.fixture
def site(sandbox, settings, quick):
    """A user who may do everything, a session with a history, and writes in several states: yields ids to be tried."""
    quick["WAIT_MAX"] = 0.05
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.ALLOWED_HOSTS = ["*"]
    user = get_user_model().objects.create_superuser("admin", "a@example.com", "secret")
    session = operations.create_session(owner=user, key="known", metadata={"topic": "tests"})
    writes = [operations.append_items(session.pk, [message("1"), message("2")])]
    operations.deliver(session.pk)
    blocked = operations.create_session(owner=user)
    sandbox.fault("rewritten", times=1)
    writes.append(operations.append_items(blocked.pk, [message("3")]))
    operations.deliver(blocked.pk)
    fresh = operations.create_session(owner=user)
    writes.append(operations.append_items(fresh.pk, [message("4")]))
    writes.append(operations.clear_session(fresh.pk))
    return {
        "known": itertools.cycle([True, True, False]),
        "session_id": itertools.cycle([session.pk, blocked.pk, fresh.pk]),
        "write_id": itertools.cycle([write.pk for write in writes]),
    }


def kinds_of_requests():
    for (path, method), operation in documented_operations().items():
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            # Nothing can be wrong with a request that has neither parameters nor a body.
            if mode.is_positive or "parameters" in operation or "requestBody" in operation:
                yield pytest.param(path, method, mode, id=f"{operation['operationId']}-{mode.value}")


@pytest.mark.parametrize(("path", "method", "mode"), list(kinds_of_requests()))
def test_every_answer_is_documented(described, site, path, method, mode):
    operation = described[path][method.upper()]
    login = "Basic " + base64.b64encode(b"admin:secret").decode()
    seen = []

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    def ask(case) -> None:
        # Every third request is for an id as generated, the others for one that there is. A new dict, for the cases
        # share the generated one.
        if case.path_parameters and next(site["known"]):
            case.path_parameters = {name: str(next(site[name])) for name in case.path_parameters}
        response = case.call(headers={"Authorization": login})
        seen.append(response.status_code)
        case.validate_response(response, checks=CHECKS)
        open_write = WriteIntent.objects.open().order_by("?").first()
        if open_write is not None and len(seen) % 3 == 0:
            operations.deliver(open_write.session_id, budget=0.0)

    ask()
    assert 200 in seen if mode.is_positive and method == "get" else seen
    print(operation.label, mode.value, sorted(collections.Counter(seen).items()))
