from __future__ import annotations

import pytest

from tests.histories import append, deliver_until_settled


@pytest.fixture
def begun(sandbox, session):
    """A session with a conversation, in which there is one message."""
    deliver_until_settled(append(session, 1, prefix="first"))
    session.refresh_from_db()
    return session
