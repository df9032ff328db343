"""A sandbox in a process of its own, for tests. Needs no configured Django in the process that uses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

START_TIMEOUT = 30.0
STOP_TIMEOUT = 3.0
READY = "sandbox listening on "


class SandboxProcess:
    """``manage.py sandbox`` on a free port of 127.0.0.1, with an SQLite file of its own in `folder`.

    `python`: the interpreter. `manage`: the site's manage.py, by default this repository's; its settings must take
    ``DATABASE_URL`` from the environment. `env`: added to the environment of the process. The output of the process
    goes to ``sandbox.log`` in `folder`.

        with SandboxProcess(tmp_path) as sandbox:
            client = OpenAI(base_url=sandbox.base_url, api_key="sandbox", max_retries=0)
            sandbox.fault("lost_after", operation="append_items")
    """

    base_url: str
    """Where it listens, such as ``http://127.0.0.1:41234/v1``; set once it runs."""

    def __init__(
        self,
        folder: Path,
        *,
        python: str = sys.executable,
        manage: Path | None = None,
        env: Mapping[str, str] | None = None,
        latency: float = 0.0,
    ) -> None:
        self.folder = folder
        self.log = folder / "sandbox.log"
        manage = manage or Path(__file__).resolve().parents[2] / "manage.py"
        self._command = [python, str(manage), "sandbox", "--port", "0", "--migrate", "--latency", str(latency)]
        database = {"DATABASE_URL": f"sqlite:///{folder / 'sandbox.sqlite3'}"}
        self._env = {**os.environ, "DJANGO_DEBUG": "1", "PYTHONUNBUFFERED": "1", **database, **(env or {})}
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when it answers. Raises RuntimeError with its output if it ends, or is silent for half a minute."""
        with self.log.open("a") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own manage.py
                self._command, stdout=subprocess.PIPE, stderr=log, env=self._env, text=True
            )
        guard = threading.Timer(START_TIMEOUT, self._process.kill)
        guard.start()
        try:
            self.base_url = self._read_address()
        except BaseException:
            self.stop()
            raise
        finally:
            guard.cancel()

    def stop(self) -> None:
        """Ends the process, by force if it does not end by itself; a second call does nothing."""
        if self._process is None:
            return
        # Terminated first, so that coverage of the process can be measured; it does not wait for hung requests.
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self._process = None

    def kill(self) -> None:
        """Ends the process as a crash would; `start` begins again with what it had stored."""
        if self._process:
            self._process.kill()
            self._process.wait()
        self.stop()

    def fault(self, kind: str, **options: Any) -> dict[str, Any]:
        """Orders a fault, see `convsessions.sandbox.faults.set_fault`; returns it as set."""
        fault: dict[str, Any] = self._call("POST", "faults", {"kind": kind, **options})
        return fault

    def faults(self) -> list[dict[str, Any]]:
        """The faults, with the uses that are left in ``times``."""
        faults: list[dict[str, Any]] = self._call("GET", "faults")
        return faults

    def clear_faults(self) -> None:
        self._call("DELETE", "faults")

    def requests(self, conversation: str | None = None) -> list[dict[str, Any]]:
        """The log, oldest first, see `convsessions.sandbox.models.SandboxRequest`."""
        query = f"?{urllib.parse.urlencode({'conversation': conversation})}" if conversation else ""
        rows: list[dict[str, Any]] = self._call("GET", f"requests{query}")
        return rows

    def conversation(self, conversation_id: str) -> dict[str, Any]:
        """The conversation with `items` and `deleted`, also a deleted one."""
        found: dict[str, Any] = self._call("GET", f"conversations/{conversation_id}")
        return found

    def items(self, conversation_id: str) -> list[dict[str, Any]]:
        """The ground truth: all items as stored, in order, also of a deleted conversation."""
        items: list[dict[str, Any]] = self.conversation(conversation_id)["items"]
        return items

    def append_foreign(self, conversation_id: str, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Appends up to 20 items as another writer would, outside the log; returns them as stored."""
        body = {"items": [dict(item) for item in items]}
        stored: list[dict[str, Any]] = self._call("POST", f"conversations/{conversation_id}/items", body)["data"]
        return stored

    def settings(self, *, latency: float) -> None:
        """`latency`: seconds before each request."""
        self._call("POST", "settings", {"latency": latency})

    def reset(self) -> None:
        """Empties all tables."""
        self._call("POST", "reset", {})

    def _read_address(self) -> str:
        if self._process is None or self._process.stdout is None:
            raise RuntimeError("the sandbox was not started")
        for line in self._process.stdout:
            if line.startswith(READY):
                return line.removeprefix(READY).strip()
        raise RuntimeError(f"the sandbox did not start:\n{self.log.read_text()}")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - the address is our own
            f"{self.base_url}/sandbox/{path}", data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310  # nosec B310
                return json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from None
