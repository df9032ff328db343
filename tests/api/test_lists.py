"""Pages of lists, and what they cost."""

from __future__ import annotations

import datetime as dt
import itertools
import re
import time

import pytest
from django.core import signing
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from convsessions import operations
from convsessions.models import ConversationSession

from .conftest import code_of, message

pytestmark = pytest.mark.django_db(transaction=True)


def pages(client, path: str, link: str = "next") -> list[list[str]]:
    found = []
    while path:
        body = client.get(path).json()
        found.append([row["id"] for row in body["results"]])
        path = body[link]
    return found


def test_pages_follow_each_other_without_gap_or_overlap(owner):
    created = [str(operations.create_session(owner=owner.user).pk) for _ in range(5)]

    assert pages(owner, "/api/sessions/?limit=2") == [created[:2:-1], created[2:0:-1], created[:1]]


def test_equal_times_do_not_confuse_the_pages(owner):
    for _ in range(5):
        operations.create_session(owner=owner.user)
    ConversationSession.objects.update(created_at=timezone.now())

    found = pages(owner, "/api/sessions/?limit=2")

    ids = [*itertools.chain(*found)]
    assert [len(page) for page in found] == [2, 2, 1]
    assert len(set(ids)) == 5


def test_previous_leads_back_to_the_same_pages(owner):
    for _ in range(5):
        operations.create_session(owner=owner.user)
    forth = pages(owner, "/api/sessions/?limit=2")
    second = owner.get("/api/sessions/?limit=2").json()["next"]
    last = owner.get(second).json()["next"]

    back = pages(owner, last, "previous")

    assert back == forth[::-1]
    first = owner.get(owner.get(second).json()["previous"]).json()
    assert (first["previous"], first["next"] is not None) == (None, True)


def test_rows_that_come_meanwhile_shift_nothing(owner):
    created = [str(operations.create_session(owner=owner.user).pk) for _ in range(3)]
    following = owner.get("/api/sessions/?limit=2").json()["next"]
    operations.create_session(owner=owner.user)

    assert pages(owner, following) == [created[:1]]


def test_links_keep_the_filters(owner, session):
    writes = [operations.append_items(session.pk, [message()]) for _ in range(3)]
    operations.pop_item(session.pk)

    assert pages(owner, f"/api/sessions/{session.pk}/writes/?kind=append&limit=2") == [
        [str(writes[2].pk), str(writes[1].pk)],
        [str(writes[0].pk)],
    ]


def test_a_page_emptied_meanwhile_has_no_links(owner):
    for _ in range(2):
        operations.create_session(owner=owner.user)
    following = owner.get("/api/sessions/?limit=1").json()["next"]
    ConversationSession.objects.all().delete()

    assert owner.get(following).json() == {"next": None, "previous": None, "results": []}


@pytest.mark.parametrize("limit", ["0", "101", "x", ""])
def test_a_wrong_limit_is_named(owner, limit):
    response = owner.get("/api/sessions/", {"limit": limit})

    assert (code_of(response), response.json()["field"]) == ((422, "invalid"), "limit")


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "é", signing.dumps([False, "2020-01-01", "1"], salt="another")],
    ids=["empty", "short", "not ascii", "signed by others"],
)
def test_a_cursor_that_is_not_ours_never_reaches_the_database(owner, cursor):
    response = owner.get("/api/sessions/", {"cursor": cursor})

    assert (code_of(response), response.json()["field"]) == ((422, "invalid_cursor"), "cursor")


def test_the_cursor_of_another_list_is_refused(owner, session):
    for _ in range(2):
        operations.create_session(owner=owner.user)
    cursor = owner.get("/api/sessions/?limit=1").json()["next"].split("cursor=")[1].split("&")[0]

    assert code_of(owner.get(f"/api/sessions/{session.pk}/writes/?cursor={cursor}")) == (422, "invalid_cursor")


def queries(client, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return len(captured)


def test_a_list_costs_the_same_queries_whatever_its_length(operator, owner, session):
    # Two for the permissions of a user who has some, one for the list; the writes first look up their session.
    paths = ["/api/sessions/", f"/api/sessions/{session.pk}/writes/"]
    operations.append_items(session.pk, [message()])
    counts = {}
    for rows in (1, 3):
        while ConversationSession.objects.count() < rows:
            operations.create_session(owner=owner.user)
            operations.append_items(session.pk, [message()])
        operator.user = type(operator.user).objects.get(pk=operator.user.pk)
        operator.force_authenticate(operator.user)
        counts[rows] = [len(owner.get(path).json()["results"]) for path in paths], queries(operator, paths[0])
        counts[rows] += (queries(operator, paths[1]),)

    assert counts == {1: ([1, 1], 3, 2), 3: ([3, 3], 3, 2)}


def test_the_progress_of_a_write_costs_the_same_queries_whatever_its_length(owner, session):
    short = operations.append_items(session.pk, [message()])
    long = operations.append_items(session.pk, [message()] * 60)
    queries(owner, f"/api/writes/{short.pk}/")  # the permissions of the user are kept from now on

    assert queries(owner, f"/api/writes/{short.pk}/") == queries(owner, f"/api/writes/{long.pk}/") == 4


def test_a_thousand_equal_times_are_no_trouble(owner):
    moment = timezone.now() - dt.timedelta(days=1)
    ConversationSession.objects.bulk_create(ConversationSession(owner=owner.user) for _ in range(1050))
    ConversationSession.objects.update(created_at=moment)

    found = [*itertools.chain(*pages(owner, "/api/sessions/?limit=100"))]

    assert len(found) == len(set(found)) == 1050


@pytest.fixture
def ten_thousand(owner) -> None:
    """10,000 sessions of the owner, and as many of nobody between them."""
    rows = (ConversationSession(owner=owner.user if number % 2 else None) for number in range(20_000))
    ConversationSession.objects.bulk_create(rows, batch_size=1000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE TABLE convsessions_conversationsession" if connection.vendor == "mysql" else "ANALYZE")


def links(client, path: str) -> list[str]:
    """The addresses of all pages of a list."""
    found = [path]
    while following := client.get(found[-1]).json()["next"]:
        found.append(following)
    return found


def fastest(client, path: str) -> float:
    def once() -> float:
        started = time.perf_counter()
        assert len(client.get(path).json()["results"]) == 100
        return time.perf_counter() - started

    return min(once() for _ in range(9))


@pytest.mark.slow
@pytest.mark.usefixtures("ten_thousand")
@pytest.mark.parametrize("who", ["owner", "operator"])
def test_the_last_of_10_000_sessions_cost_as_much_as_the_first(who, request):
    client = request.getfixturevalue(who)
    addresses = links(client, "/api/sessions/?limit=100")
    assert len(addresses) == (100 if who == "owner" else 200)

    ratio = fastest(client, addresses[-1]) / fastest(client, addresses[0])

    print(f"last page / first page for {who} on {connection.vendor}: {ratio:.2f}")
    assert ratio < 2


@pytest.mark.skipif(connection.vendor != "postgresql", reason="reads PostgreSQL's plans")
@pytest.mark.usefixtures("ten_thousand")
@pytest.mark.parametrize(
    ("who", "index"), [("owner", "convsessions_owner_created"), ("operator", "convsessions_created")]
)
def test_a_page_reads_no_more_rows_than_it_shows(who, index, request):
    client = request.getfixturevalue(who)
    last = links(client, "/api/sessions/?limit=100")[-1]
    with CaptureQueriesContext(connection) as captured:
        client.get(last)
    [listing] = [query["sql"] for query in captured if "ORDER BY" in query["sql"] and "LIMIT 101" in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS OFF, TIMING OFF) {listing}")
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert index in plan
    assert max(map(int, re.findall(r"Rows Removed by Filter: (\d+)", plan)), default=0) <= 1, plan
