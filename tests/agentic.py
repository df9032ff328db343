"""The vLLM project's Conversations API (agentic-api, one Rust binary) in a process of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 30.0


@contextmanager
def agentic_api(folder: Path) -> Iterator[str]:
    """Its base URL. Raises RuntimeError if it does not come up, FileNotFoundError where it is not installed."""
    # Beside the interpreter, whose environment need not be activated.
    here = str(Path(sys.executable).parent)
    binary = shutil.which("agentic-server", path=os.pathsep.join([here, os.environ.get("PATH", "")]))
    if binary is None:
        raise FileNotFoundError("agentic-server is not installed: pip install agentic-api==0.9.0")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        binary, "--llm-api-base", "http://127.0.0.1:9", "--skip-llm-ready-check", "--gateway-host", "127.0.0.1",
        "--gateway-port", str(port), "--db-url", f"sqlite://{folder / 'agentic.db'}?mode=rwc",
    ]  # fmt: skip
    with (folder / "agentic.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "HOME": str(folder)})
    try:
        wait_until_healthy(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(10)


def wait_until_healthy(url: str, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=1) as reply:
                if reply.status == 200:
                    return
        except OSError:
            if process.poll() is not None or time.monotonic() > ends:
                raise RuntimeError(f"{url} did not answer") from None
        time.sleep(0.05)
