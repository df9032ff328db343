"""`manage.py demo`, as a user runs it: a process, its output, its exit code, and nothing left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
PATIENCE = 120
"""Seconds, on a slow machine."""


class Demo:
    """A demo with a temporary folder of its own, whose processes are known by a mark in their environment."""

    def __init__(self, folder: Path, *arguments: str, **env: str) -> None:
        self.folder, self.mark = folder, f"mark-{uuid.uuid4()}"
        site = {"DATABASE_URL": f"sqlite:///{folder / 'site.sqlite3'}", "OPENAI_API_KEY": "sk-real", "Q_WORKERS": "0"}
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            # As a shell has it in the background; what is started here would ignore it, too.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self.process = subprocess.Popen(
            [sys.executable, MANAGE, "demo", *arguments],
            env={**os.environ, **site, "TMPDIR": str(folder), "DEMO_MARK": self.mark, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self) -> tuple[str, str]:
        return self.process.communicate(timeout=PATIENCE)

    def relatives(self) -> list[str]:
        """The command lines of the processes that it started, and that still run."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (process / "environ").read_bytes() and process.name != str(self.process.pid):
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        return found


@pytest.fixture
def demo(tmp_path) -> Iterator[type[Demo]]:
    started: list[Demo] = []

    def start(*arguments: str, **env: str) -> Demo:
        started.append(Demo(tmp_path, *arguments, **env))
        return started[-1]

    yield start
    for one in started:
        one.process.terminate()
        one.process.communicate()


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")


@pytest.mark.slow
def test_loses_and_doubles_nothing_and_says_so(demo, tmp_path):
    started = demo("--json")

    out, words = started.end()

    assert started.process.returncode == 0, words
    result = json.loads(out.splitlines()[-1])
    assert 0 < result.pop("seconds") < 60
    requests = result.pop("requests")
    assert result == {
        "items": 137,
        "chunks": 8,
        "duplicates": 0,
        "lost": 0,
        "in_order": True,
        "reconciled": 2,
    }
    # One creation, eight chunks, one of them again, and the reads that decided: fewer would have been guesses.
    assert requests >= 1 + 8 + 1 + 4
    assert re.search(r"no reply came.*exactly once:\s+they are\s+saved", words, re.DOTALL)
    assert re.search(r"killed while the request was under way.*were sent again", words, re.DOTALL)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@needs_proc
def test_serves_what_it_did_until_it_is_stopped(demo, free_port, tmp_path):
    started = demo("--serve", "--port", str(free_port))
    said = _read_until(started, "Ctrl-C")
    address = f"http://127.0.0.1:{free_port}"

    assert re.search(rf"{address}/admin/convsessions/writeintent/[0-9a-f-]+/change/", said)
    assert re.search(r"user: admin\s+password: \S{12}", said)
    assert "talks to a sandbox" in _get(f"{address}/")
    assert "Password" in _get(f"{address}/admin/login/")
    assert "--primary" in _get(f"{address}/static/admin/css/base.css")
    assert {line.split("manage.py ")[-1].split()[0] for line in started.relatives()} == {
        "sandbox",
        "qcluster",
        "runserver",
    }

    started.process.send_signal(signal.SIGTERM)
    _, errors = started.end()

    assert started.process.returncode == 0, errors
    assert started.relatives() == []
    assert list(tmp_path.iterdir()) == []


@needs_proc
def test_stops_everything_when_it_is_interrupted_in_the_middle(demo, tmp_path):
    started = demo()
    _read_until(started, "Recorded 137 items")

    started.process.send_signal(signal.SIGINT)
    _, errors = started.end()

    assert started.process.returncode == 130
    assert "Interrupted" in errors
    assert started.relatives() == []
    assert list(tmp_path.iterdir()) == []


def test_says_which_port_is_taken(demo, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        started = demo("--serve", "--port", str(port))
        _, errors = started.end()

    assert started.process.returncode == 1
    assert f"Port {port} of 127.0.0.1 is taken." in errors
    assert list(tmp_path.iterdir()) == []


def _read_until(started: Demo, text: str) -> str:
    said, ends = "", time.monotonic() + PATIENCE
    while text not in said:
        line = started.process.stdout.readline()
        assert line, started.process.stderr.read()
        assert time.monotonic() < ends, said
        said += line
    return said


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as response:
        return response.read().decode()
