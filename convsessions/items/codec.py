"""JSON text that any database keeps byte for byte.

The text is pure ASCII: every other character is escaped, so that neither a connection's character set nor a text
column that cannot hold U+0000 (PostgreSQL) or four-byte characters (MySQL's utf8mb3) can alter a string. Keys keep
their order; integers of any size, and the difference between 1 and 1.0, survive.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any


def encode(value: Any) -> str:
    """JSON text of `value`, compact and ASCII. Raises ValueError for NaN and infinities, TypeError for other types."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def decode(text: str) -> Any:
    """What `encode` was given."""
    return json.loads(text)


def digest(text: str) -> str:
    """SHA-256 of `text`, 64 hexadecimal digits. Lone surrogates are distinguished, not refused."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
