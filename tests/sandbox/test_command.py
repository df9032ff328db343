"""manage.py sandbox, in processes of its own."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from openai import APITimeoutError, OpenAI

from convsessions.sandbox.testing import SandboxProcess

from .conftest import user


def run(sandbox: SandboxProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with the interpreter, site and environment of `sandbox`, to its end."""
    return subprocess.run(
        [*sandbox._command[:3], *arguments], env=sandbox._env, capture_output=True, text=True, timeout=30, check=False
    )


def test_it_refuses_without_its_tables(tmp_path: Path) -> None:
    result = run(SandboxProcess(tmp_path), "--port", "0")

    assert (result.returncode, result.stdout) == (1, "")
    assert "run `manage.py migrate convsessions_sandbox`" in result.stderr


def test_it_says_that_a_port_is_taken(process: SandboxProcess) -> None:
    port = process.base_url.split(":")[2].removesuffix("/v1")

    result = run(process, "--port", port)

    assert result.returncode == 1
    assert f"Cannot listen on 127.0.0.1:{port}" in result.stderr


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_cleanly_though_a_request_hangs(tmp_path: Path, signum: signal.Signals) -> None:
    with SandboxProcess(tmp_path) as sandbox:
        sandbox.fault("hang_after", seconds=60)
        with (
            OpenAI(base_url=sandbox.base_url, api_key="sandbox", max_retries=0, timeout=0.2) as client,
            pytest.raises(APITimeoutError),
        ):
            client.conversations.create()

        assert sandbox._process is not None
        sandbox._process.send_signal(signum)

        assert sandbox._process.wait(timeout=5) == 0
    assert sandbox.log.read_text() == ""


def test_what_it_stored_is_there_after_it_was_killed(tmp_path: Path) -> None:
    with SandboxProcess(tmp_path) as sandbox:
        with OpenAI(base_url=sandbox.base_url, api_key="sandbox") as client:
            conversation = client.conversations.create(items=[user()]).id

        sandbox.kill()
        sandbox.start()

        assert len(sandbox.items(conversation)) == 1


def test_latency_is_an_option(tmp_path: Path) -> None:
    with (
        SandboxProcess(tmp_path, latency=0.15) as sandbox,
        OpenAI(base_url=sandbox.base_url, api_key="sandbox") as client,
    ):
        client.conversations.create()
        (row,) = sandbox.requests()

    assert row["finished_at"] - row["started_at"] >= 0.15


def test_control_can_be_taken_away(tmp_path: Path) -> None:
    sandbox = SandboxProcess(tmp_path)
    sandbox._command.append("--no-control")

    with sandbox, OpenAI(base_url=sandbox.base_url, api_key="sandbox") as client:
        client.conversations.create()
        with pytest.raises(RuntimeError, match="404"):
            sandbox.requests()


def test_a_process_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="nonsense"):
        SandboxProcess(tmp_path, env={"DATABASE_URL": "nonsense://"}).start()
