from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Item = dict[str, Any]


def transcript() -> list[Item]:
    """The 137 items of a conversation with a travel desk, as an application would append them: without ids."""
    items: list[Item] = json.loads(Path(__file__).with_name("transcript.json").read_text(encoding="utf-8"))
    return items
