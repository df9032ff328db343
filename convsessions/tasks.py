"""What django-q2 runs. Tasks take ids, may run twice or at once, and may be killed at any line."""

from __future__ import annotations

import uuid

from . import operations


def deliver_session(session_id: str) -> None:
    """Deliver the writes of one session within the time budget."""
    operations.work(uuid.UUID(session_id))


def deliver_ready(session_id: str) -> None:
    """Deliver this session and others that are due, many at a time, within the time budget."""
    operations.answer_doorbell(uuid.UUID(session_id))


def sweep() -> None:
    """Ring the doorbell of every session with work that nobody is doing."""
    operations.sweep()
