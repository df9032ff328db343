"""A reading of many pages takes longer than a lease lasts; it extends its lease on the way."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from convsessions import operations
from convsessions.delivery.protocol import Ending
from convsessions.states import WriteState
from tests.histories import append, deliver_until_settled, messages

pytestmark = pytest.mark.django_db(transaction=True)


def test_nobody_takes_over_a_session_whose_history_is_being_read(sandbox, session, quick):
    deliver_until_settled(append(session, 1))
    session.refresh_from_db()
    sandbox.fault("lost_after", operation="append_items")
    write = append(session, 1, start=1)
    operations.deliver(session.pk, budget=0)  # sends, and does not know
    for _ in range(18):
        sandbox.append_foreign(session.conversation_id, messages(20, prefix="foreign"))
    sandbox.settings(latency=0.7)  # for each of four pages; a lease lasts 2 seconds
    endings = []

    def deliver() -> None:
        try:
            endings.append(operations.deliver(session.pk).ending)
        finally:
            connection.close()

    worker = threading.Thread(target=deliver)
    worker.start()
    others = []
    while worker.is_alive():
        worker.join(0.1)
        session.refresh_from_db()
        if session.lease_token is not None:
            others.append(operations.deliver(session.pk).ending)

    assert endings == [Ending.DONE]
    assert set(others) == {Ending.NOTHING_TO_DO}
    assert operations.get_write(write.pk).state == WriteState.SAVED
