"""The start page, and the sandbox that a site without a key serves."""

from __future__ import annotations

import pytest


def test_says_that_it_talks_to_a_sandbox(client, settings):
    settings.TALKS_TO_SANDBOX, settings.API_URL = True, "http://127.0.0.1:8000/sandbox/v1"

    page = client.get("/").content.decode()

    assert "It talks to a sandbox, not to OpenAI" in page
    assert "http://127.0.0.1:8000/sandbox/v1" in page


def test_says_that_it_talks_to_the_real_api(client, settings):
    settings.TALKS_TO_SANDBOX, settings.API_URL = False, "https://api.openai.com/v1"

    page = client.get("/").content.decode()

    assert "It talks to the API at <code>https://api.openai.com/v1</code>" in page
    assert "sandbox" not in page


def test_asks_no_other_site_for_anything(client):
    page = client.get("/").content.decode()

    assert "<link" not in page
    assert "<script" not in page
    assert "src=" not in page


def test_links_to_the_parts(client):
    page = client.get("/").content.decode()

    assert 'href="/admin/"' in page
    assert 'href="/api/docs/"' in page


@pytest.mark.django_db
def test_serves_a_sandbox(client, settings):
    if not settings.TALKS_TO_SANDBOX:
        pytest.skip("this environment has a key")

    answer = client.post("/sandbox/v1/conversations", {}, "application/json", headers={"Authorization": "Bearer any"})

    assert answer.status_code == 200
    assert answer.json()["object"] == "conversation"
