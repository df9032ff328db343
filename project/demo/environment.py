"""The environment of the demo and of every process that it starts: nothing of the site's own settings gets in."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

OF_THE_SITE = ("DATABASE_URL", "REDIS_URL", "OPENAI_", "DJANGO_", "Q_", "CONVSESSIONS_")
"""What the names of the variables begin with that configure a site. A real key, above all, must not get in."""

TIMINGS = {
    # Seconds: request 2 < lease 3 < lease and delivery budget 13 < the queue's timeout 15 < its retry
    "CONVSESSIONS_REQUEST_TIMEOUT": "2",
    "CONVSESSIONS_LEASE_GRACE": "1",
    "CONVSESSIONS_SETTLE_SECONDS": "0.5",
    "CONVSESSIONS_DELIVERY_BUDGET": "10",
    "CONVSESSIONS_RETRY_BACKOFF": "[0.2, 2]",
    "Q_TIMEOUT": "15",
    "Q_RETRY": "40",
    "Q_POLL": "0.05",
    "Q_WORKERS": "2",
}
"""Ordinary settings, only shorter than a site would have them, so that nobody waits for a lease to run out."""

LOOPBACK = "127.0.0.1"


def demo_environment(folder: Path, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """`given` without what configures the site, with a database in `folder` and the demo's timings."""
    kept = {name: value for name, value in given.items() if not name.startswith(OF_THE_SITE)}
    # Not "localhost only": whatever else the user's proxy settings spare stays spared.
    spared = ",".join(filter(None, [given.get("NO_PROXY") or given.get("no_proxy"), LOOPBACK]))
    return {
        **kept,
        **TIMINGS,
        "DJANGO_SETTINGS_MODULE": "project.settings",
        "DJANGO_DEBUG": "1",
        "DATABASE_URL": f"sqlite:///{folder / 'demo.sqlite3'}",
        "PYTHONUNBUFFERED": "1",
        "NO_PROXY": spared,
        "no_proxy": spared,
    }


def is_free(port: int) -> bool:
    """Whether a server can listen on this port of 127.0.0.1 now."""
    with socket.socket() as probe:
        # As servers do: connections that have just ended do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
