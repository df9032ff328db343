"""What becomes of a delivery that raises, where others go on beside it."""

from __future__ import annotations

import logging
import uuid
from typing import Final

logger = logging.getLogger(__name__)

FAILED: Final = "failed"
"""How such a delivery ended, beside the values of `Ending`."""

Endings = dict[uuid.UUID, str]
"""How the last delivery of each session ended: a value of `Ending`, or FAILED."""


def failed(session_id: uuid.UUID, error: Exception) -> str:
    """Log that the delivery of a session raised `error`; returns FAILED. The journal has the writes."""
    # Without its text: a database may quote the row that it refused.
    logger.error("delivery_failed session=%s error=%s", session_id, type(error).__name__)
    return FAILED
