"""Clients that go away, and many at once: the same key is the same write."""

from __future__ import annotations

import base64
import json
import socket
import threading
import urllib.request
from collections import Counter
from urllib.parse import urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, connections
from rest_framework.test import APIClient

from convsessions import operations
from convsessions.models import WriteIntent
from tests.histories import eventually

from .conftest import message

pytestmark = pytest.mark.django_db(transaction=True)

LOGIN = "Basic " + base64.b64encode(b"ada:secret").decode()
BODY = json.dumps({"items": [message()]}).encode()


@pytest.fixture
def ada(settings, sandbox, quick):
    quick["WAIT_MAX"] = 5.0
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return get_user_model().objects.create_user("ada", password="secret")


def headers(**more: str) -> dict[str, str]:
    return {"Authorization": LOGIN, "Content-Type": "application/json", "Idempotency-Key": "once", **more}


def test_a_client_that_goes_away_while_waiting_gets_the_same_write_with_its_key(live_server, ada):
    session = operations.create_session(owner=ada)
    address = urlsplit(f"{live_server.url}/api/sessions/{session.pk}/items/")
    lines = [f"POST {address.path} HTTP/1.1", f"Host: {address.netloc}", f"Content-Length: {len(BODY)}"]
    lines += [f"{name}: {value}" for name, value in headers(Prefer="wait=5").items()]

    with socket.create_connection((address.hostname, address.port)) as client:
        client.sendall("\r\n".join([*lines, "", ""]).encode() + BODY)
        write = eventually(WriteIntent.objects.first)
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):  # it is waiting, and has answered nothing
            client.recv(1)
    operations.deliver(session.pk)

    retry = urllib.request.Request(address.geturl(), BODY, headers(Prefer="wait=5"))
    with urllib.request.urlopen(retry, timeout=10) as response:
        answer = json.load(response)
    assert (response.status, answer["id"], answer["state"]) == (201, str(write.pk), "saved")
    assert response.headers["Idempotent-Replayed"] == "true"
    assert WriteIntent.objects.count() == 1


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite lets one transaction in at a time anyway")
@pytest.mark.parametrize("verb", ["items", "pop", "clear"])
def test_50_requests_at_once_with_one_key_are_one_write(ada, verb):
    session = operations.create_session(owner=ada)
    barrier, answers = threading.Barrier(50), []

    def request() -> None:
        client = APIClient()
        client.force_authenticate(ada)
        barrier.wait()
        response = client.post(
            f"/api/sessions/{session.pk}/{verb}/",
            {"items": [message()]} if verb == "items" else {},
            format="json",
            headers={"Idempotency-Key": "once"},
        )
        answers.append((response.status_code, response.json()["id"], response.get("Idempotent-Replayed")))
        connections.close_all()

    threads = [threading.Thread(target=request) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    only = str(WriteIntent.objects.get().pk)
    assert Counter(answers) == {(202, only, None): 1, (202, only, "true"): 49}
