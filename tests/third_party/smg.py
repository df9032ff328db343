"""smg's Conversations API in a process of its own, in memory."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.agentic import wait_until_healthy


@contextmanager
def smg(folder: Path) -> Iterator[str]:
    """Its base URL. Raises RuntimeError if it does not come up, FileNotFoundError where it is not installed."""
    here = str(Path(sys.executable).parent)
    binary = shutil.which("smg", path=os.pathsep.join([here, os.environ.get("PATH", "")]))
    if binary is None:
        raise FileNotFoundError("smg is not installed: pip install smg==1.13.0")
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        port, metrics = one.getsockname()[1], other.getsockname()[1]
    command = [
        binary, "launch", "--host", "127.0.0.1", "--port", str(port), "--backend", "openai",
        "--worker-urls", "http://127.0.0.1:9", "--history-backend", "memory", "--disable-health-check",
        "--prometheus-host", "127.0.0.1", "--prometheus-port", str(metrics),
    ]  # fmt: skip
    with (folder / "smg.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "HOME": str(folder)})
    try:
        wait_until_healthy(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(30)
