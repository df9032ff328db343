"""Run chaos by hand::

    DATABASE_URL=postgres://…/chaos python -m tests.chaos --sessions 300 --faults 1200 --kills 60 --sdk

The database is emptied first; its name must contain "chaos".
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from .plan import Timings


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--faults", type=int, default=1200)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--writes", type=int, default=6, help="per session")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--undecidable", action="store_true", help="also foreign writers and a proxy that applies twice"
    )
    parser.add_argument("--sdk", action="store_true", help="run the Agents SDK's session under the same plan too")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


def main() -> int:
    options, timings = arguments(), Timings()
    if "chaos" not in os.environ.get("DATABASE_URL", ""):
        sys.exit("Set DATABASE_URL to a database whose name contains chaos; it will be emptied.")
    from convsessions.sandbox.testing import SandboxProcess

    with tempfile.TemporaryDirectory() as folder, SandboxProcess(Path(folder)) as sandbox:
        figures = run_all(options, timings, sandbox, Path(folder))
    print(json.dumps(figures) if options.json else table(figures))
    return 1 if figures["convsessions"]["wrong"] else 0


def run_all(options, timings, sandbox, folder):
    convsessions = {
        "REQUEST_TIMEOUT": timings.timeout,
        "LEASE_GRACE": timings.grace,
        "SETTLE_SECONDS": timings.settle,
        "DELIVERY_BUDGET": 10,
        "RETRY_BACKOFF": [0.1, 2.0],
        "VERIFY_WRITES": options.undecidable,
    }
    for name, value in convsessions.items():
        os.environ[f"CONVSESSIONS_{name}"] = json.dumps(value)
    site = {
        "DJANGO_SETTINGS_MODULE": "project.settings",
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_BASE_URL": sandbox.base_url,
    }
    os.environ.update(site, Q_WORKERS="2", Q_TIMEOUT="20", Q_RETRY="60", Q_POLL="0.1")
    import django

    django.setup()
    from django.core.management import call_command

    from . import ours, sdk

    call_command("migrate", verbosity=0)
    call_command("flush", interactive=False, verbosity=0)
    setup = ours.Setup(
        sessions=options.sessions,
        faults=options.faults,
        kills=options.kills,
        seed=options.seed,
        writes=options.writes,
        workers=options.workers,
        undecidable=options.undecidable,
    )
    figures = {"convsessions": ours.run(setup, sandbox, os.environ, timings, folder / "workers.log")}
    print(json.dumps(figures), file=sys.stderr, flush=True)
    if options.sdk:
        for name, retry in (("SDK session, no retry", False), ("SDK session, naive retry", True)):
            sandbox.reset()
            figures[name] = sdk.run(setup, sandbox, timings, retry=retry)
    return figures


def table(figures) -> str:
    columns = ("sessions", "faults", "exact", "ambiguous", "wrong", "doubled", "lost", "seconds")
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += [
        f"| {name} | " + " | ".join(str(row[column]) for column in columns) + " |" for name, row in figures.items()
    ]
    lines += ["", json.dumps({key: value for key, value in figures["convsessions"].items() if key not in columns})]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
