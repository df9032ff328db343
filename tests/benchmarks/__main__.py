"""What the journal costs: ours and the Agents SDK's own session, in one run, on the same server.

    DATABASE_URL=postgres://… python -m tests.benchmarks [--latency 0 0.05] [--rounds 5] [--only single|many] [--json]

The remote is one in memory (`remote.py`); its share of the time is printed, too. The database is a test database
beside that of DATABASE_URL, made and dropped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from typing import Any

from .site import site


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, nargs="+", default=[0.0, 0.02, 0.05, 0.1], help="seconds")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 20, 200])
    parser.add_argument("--only", choices=["single", "many"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with site() as remote:
        from . import many, single
        from .counting import count_everything

        found: dict[str, Any] = {"load": os.getloadavg(), "cpus": os.cpu_count()}
        if options.only != "many":
            results = asyncio.run(single.run(remote, count_everything(), options.latency, options.rounds))
            found["single"] = [result.as_dict() for result in results]
        if options.only != "single":
            found["many"] = many.run(remote, options.sessions, options.latency, options.rounds)
        found["load_after"] = os.getloadavg()
    print(json.dumps(found, indent=1) if options.json else _as_text(found))


def _as_text(found: dict[str, Any]) -> str:
    lines = [f"load before and after: {found['load']}, {found['load_after']}; {found['cpus']} CPUs", ""]
    if "single" in found:
        lines += [
            f"{'operation':26} {'latency':>8} {'SDK ms':>9} {'ours ms':>9} {'ratio':>6}   requests, queries, commits"
        ]
    for row in found.get("single", ()):
        sdk, ours = row.get("sdk"), row["ours"]
        times = f"{sdk['median_ms'] if sdk else '-':>9} {ours['median_ms']:>9} {row.get('ratio', '-'):>6}"
        costs = f"{sdk['requests'] if sdk else '-'} -> {ours['requests']}, {ours['queries']}, {ours['commits']}"
        lines.append(f"{row['operation']:26} {row['latency_ms']:>5.0f} ms {times}   {costs}")
    for row in found.get("many", ()):
        lines += ["", json.dumps(row)]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
