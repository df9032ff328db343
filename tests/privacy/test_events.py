"""The events that are logged have stable names, which the README lists."""

from __future__ import annotations

import re
from pathlib import Path

EVENT = re.compile(r'^\s*(?:logger\.\w+\()?.*"([a-z]+(?:_[a-z]+)+) [a-z]+=%s', re.MULTILINE)
ROOT = Path(__file__).resolve().parents[2]


def test_every_event_is_in_the_readme_and_every_listed_one_is_logged():
    modules = [path for path in (ROOT / "convsessions").rglob("*.py") if "sandbox" not in path.parts]
    logged = {name for path in modules for name in EVENT.findall(path.read_text())}
    readme = (ROOT / "README.md").read_text()
    entry = readme[readme.index("- **Logs.**") : readme.index("- **Traces.**")]
    listed = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", entry)) - {"request_id"}

    assert listed == logged
