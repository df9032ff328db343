"""The servers: the sandbox, and those by others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .smg import smg
from .table import AGENTIC, SMG

SANDBOX = "sandbox"


@pytest.fixture(scope="session")
def smg_url(tmp_path_factory) -> Iterator[str]:
    try:
        with smg(tmp_path_factory.mktemp("smg")) as url:
            yield url
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(params=[SANDBOX, AGENTIC, SMG])
def server(request, monkeypatch) -> str:
    """The name of a server that the default client talks to."""
    if request.param == SANDBOX:
        request.getfixturevalue("sandbox")
    else:
        url = request.getfixturevalue("agentic_url" if request.param == AGENTIC else "smg_url")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", url)
    name: str = request.param
    return name
