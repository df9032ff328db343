"""Twenty items of 5 MB in one write: cut by bytes, exact, and loaded by no list and no page but that of content."""

from __future__ import annotations

import re
from string import ascii_lowercase

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from convsessions import operations
from convsessions.exceptions import InvalidItem
from convsessions.items import codec
from convsessions.models import WriteIntent
from convsessions.states import WriteState
from tests.histories import append_requests

TEXT_BYTES, COUNT = 5_000_000, 20

pytestmark = pytest.mark.django_db(transaction=True)


def large(number):
    """An item with 5 MB of text that differs from others at both ends, and an id, so that it is sent changed."""
    text = f"{number}".ljust(TEXT_BYTES - 10, ascii_lowercase[number]) + f"{number:010}"
    return {"id": f"msg_{number}", "role": "user", "content": text}


@pytest.fixture
def write(sandbox, session, quick):
    quick |= {"REQUEST_TIMEOUT": 60.0, "DELIVERY_BUDGET": 600.0}
    return operations.append_items(session.pk, [large(number) for number in range(COUNT)])


def test_they_are_cut_by_bytes_and_arrive_exactly(sandbox, session, write):
    sizes = write.chunks.values_list("first_item", "item_count")
    assert list(sizes) == [(number, 1) for number in range(COUNT)]

    operations.deliver(session.pk)

    write.refresh_from_db()
    assert (write.state, write.items_saved) == (WriteState.SAVED, COUNT)
    assert len(append_requests(sandbox, session)) == COUNT
    for number, item in enumerate(operations.iter_items(session.pk)):
        assert item["content"] == [{"type": "input_text", "text": large(number)["content"]}]
    assert number == COUNT - 1
    for number, text in enumerate(operations.export_items(session.pk)):
        assert text == codec.encode(large(number))


def pages(write):
    def admin(name, *args):
        return reverse(f"admin:convsessions_{name}", args=args)

    return {
        "the admin's list of writes": admin("writeintent_changelist"),
        "the admin's list of sessions": admin("conversationsession_changelist"),
        "the admin's page of a write": admin("writeintent_change", write.pk),
        "the admin's page of a session": admin("conversationsession_change", write.session_id),
        "the list of sessions": "/api/sessions/",
        "a session": f"/api/sessions/{write.session_id}/",
        "its writes": f"/api/sessions/{write.session_id}/writes/",
        "a write": f"/api/writes/{write.pk}/",
        "the health": "/api/health/",
    }


def test_no_list_and_no_page_loads_them(write, admin_client):
    for name, path in pages(write).items():
        with CaptureQueriesContext(connection) as queries:
            response = admin_client.get(path)
        assert response.status_code == 200, name
        assert len(response.content) < TEXT_BYTES, name
        loaded = [query["sql"][:300] for query in queries if _selects_content(query["sql"])]
        assert loaded == [], name


def _selects_content(sql):
    """Whether a query brings the content of chunks, which two columns hold, to this process."""
    selected = re.match(r"SELECT (.*?) FROM ", sql, re.DOTALL)
    return bool(selected and re.search(r"[`\"](payload|original)[`\"]", selected[1]))


def test_the_query_for_content_would_be_seen(write, admin_client):
    with CaptureQueriesContext(connection) as queries:
        WriteIntent.objects.get(pk=write.pk).chunks.only("payload").first()

    assert any(_selects_content(query["sql"]) for query in queries)


@pytest.mark.parametrize("character", ['"', "\\", "é", "\x00", "\U0001f600", "a"], ids=ascii)
@pytest.mark.parametrize("given", [{}, {"id": "msg_1"}], ids=["as given", "changed"])
def test_the_largest_item_is_journaled_or_refused_by_name_whatever_it_is_made_of(session, character, given):
    """MariaDB takes packets of 16 MiB by default, in which what it is sent is escaped."""
    room = 8 * 1024 * 1024 - len(codec.encode({"role": "user", "content": ""}))
    content = character * (room // (len(codec.encode(character)) - 2))
    item = {"role": "user", "content": content, **given}

    refused = None
    try:
        operations.append_items(session.pk, [item])
    except InvalidItem as error:
        refused = error
    if refused is not None:
        assert connection.vendor == "mysql"
        assert given or character in '"\\'
        assert (refused.field, refused.code) == ("items[0]", "too_large")
        assert not WriteIntent.objects.exists()
    else:
        assert list(operations.export_items(session.pk, pending=True)) == [codec.encode(item)]


def test_what_is_not_sent_counts_when_items_are_put_into_one_row(session):
    """A row of the journal has its items as sent and as given, and neither outgrows CHUNK_BYTES."""
    item = {"role": "user", "content": "x", "provider_data": {"raw": "y" * 900_000}}

    write = operations.append_items(session.pk, [item] * 20)

    assert max(len(chunk.original) for chunk in write.chunks.all()) <= 4 * 1024 * 1024
    assert list(operations.export_items(session.pk, pending=True)) == [codec.encode(item)] * 20
