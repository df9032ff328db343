"""Who may see and do what."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db.models import Model
from rest_framework.test import APIClient

from convsessions import operations
from convsessions.api import urls
from convsessions.api.access import Act, SessionAccess
from convsessions.models import ConversationSession, WriteIntent

from .conftest import code_of, message, person

pytestmark = pytest.mark.django_db(transaction=True)

METHODS = ("get", "post", "put", "patch", "delete")
OF_AN_OBJECT = [pattern for pattern in urls.urlpatterns if "<" in str(pattern.pattern)]
WITHOUT_OBJECT = {"sessions", "health"}
FIELDS = {
    "session": {"key": "stolen", "metadata": {"a": "b"}},
    "items": {"items": [message()]},
    "reconcile": {"reason": "r"},
    "resolve": {"reason": "r", "resolution": "abandon", "evidence": "e"},
}
"""What a request to the URL of this name takes, so that nothing but the rule of access can be in its way."""


def path_of(pattern, write: WriteIntent) -> str:
    route = str(pattern.pattern)
    return "/api/" + route.replace("<str:session_id>", str(write.session_id)).replace("<str:write_id>", str(write.pk))


def everything() -> list[dict]:
    models: tuple[type[Model], ...] = (ConversationSession, WriteIntent)
    return [row for model in models for row in model.objects.values()]


def test_every_url_is_of_an_object_or_known_to_be_of_none():
    assert {pattern.name for pattern in urls.urlpatterns} - {pattern.name for pattern in OF_AN_OBJECT} == WITHOUT_OBJECT


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pattern", OF_AN_OBJECT, ids=lambda pattern: pattern.name)
def test_what_belongs_to_another_owner_does_not_exist(session, stranger, pattern, method):
    write = operations.append_items(session.pk, [message()])
    before = everything()

    response = getattr(stranger, method)(path_of(pattern, write), FIELDS.get(pattern.name, {}), format="json")

    kind = "session" if "session_id" in str(pattern.pattern) else "write"
    allowed = method.upper() in pattern.callback.cls().allowed_methods
    assert code_of(response) == ((404, f"{kind}_not_found") if allowed else (405, "method_not_allowed"))
    assert everything() == before


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pattern", OF_AN_OBJECT, ids=lambda pattern: pattern.name)
def test_without_authentication_nothing_is_seen(session, pattern, method):
    write = operations.append_items(session.pk, [message()])
    before = everything()

    response = getattr(APIClient(), method)(path_of(pattern, write), {}, format="json")

    assert code_of(response) == (403, "not_authenticated")
    assert everything() == before


def test_a_list_shows_only_ones_own(session, owner, stranger):
    operations.create_session(owner=None)

    assert [row["id"] for row in owner.get("/api/sessions/").json()["results"]] == [str(session.pk)]
    assert stranger.get("/api/sessions/").json()["results"] == []


def test_the_key_filter_opens_nothing(owner, stranger):
    operations.create_session(owner=owner.user, key="mine")

    assert stranger.get("/api/sessions/", {"key": "mine"}).json()["results"] == []


@pytest.mark.parametrize(
    ("permissions", "path", "status"),
    [
        (["view_conversationsession"], "sessions/{session}/", 200),
        (["view_conversationsession"], "sessions/{session}/writes/", 200),
        (["view_conversationsession"], "writes/{write}/", 200),
        (["change_conversationsession"], "sessions/{session}/", 200),
        (["view_writeintent"], "sessions/{session}/", 404),
        (["change_writeintent"], "writes/{write}/", 404),
        (["resolve_writeintent"], "writes/{write}/resolve/", 404),
    ],
)
def test_a_model_permission_opens_the_sessions_of_others(session, permissions, path, status):
    write = operations.append_items(session.pk, [message()])
    client = person("somebody", *permissions)

    response = client.get(f"/api/{path.format(session=session.pk, write=write.pk)}")

    assert response.status_code == status


@pytest.mark.parametrize(
    ("permissions", "path", "status"),
    [
        (["view_conversationsession"], "sessions/{session}/items/", 403),
        (["view_conversationsession"], "sessions/{session}/pop/", 403),
        (["view_conversationsession"], "sessions/{session}/clear/", 403),
        (["view_conversationsession"], "writes/{write}/cancel/", 403),
        (["change_conversationsession"], "sessions/{session}/items/", 201),
        (["change_conversationsession"], "sessions/{session}/pop/", 202),
        (["change_conversationsession"], "sessions/{session}/clear/", 202),
        (["view_conversationsession", "cancel_writeintent"], "writes/{write}/cancel/", 200),
    ],
)
def test_changing_the_session_of_another_takes_a_permission(session, permissions, path, status):
    write = operations.append_items(session.pk, [message()])
    client = person("somebody", *permissions)
    fields = {"items": []} if path.endswith("items/") else {}

    response = client.post(f"/api/{path.format(session=session.pk, write=write.pk)}", fields, format="json")

    assert response.status_code == status
    assert WriteIntent.objects.count() == (2 if status in {201, 202} else 1)


@pytest.mark.parametrize("verb", ["reconcile", "resolve"])
@pytest.mark.parametrize("staff", [True, False])
@pytest.mark.parametrize("permissions", [[], ["reconcile_writeintent", "resolve_writeintent"]])
def test_operating_takes_staff_with_the_permission(ambiguous, verb, staff, permissions):
    client = person("somebody", "view_conversationsession", *permissions, staff=staff)

    response = client.post(f"/api/writes/{ambiguous.pk}/{verb}/", {}, format="json")

    assert code_of(response) == ((422, "required") if staff and permissions else (403, "permission_denied"))


@pytest.mark.parametrize("verb", ["reconcile", "resolve"])
def test_an_owner_is_no_operator(owner, ambiguous, verb):
    assert code_of(owner.post(f"/api/writes/{ambiguous.pk}/{verb}/")) == (403, "permission_denied")


class Shared(SessionAccess):
    """The rule of a host where a session belongs to whoever knows its id."""

    def visible(self, sessions):
        return sessions

    def allows(self, act, session):
        return True


def test_a_host_replaces_the_rule_as_one_class(session, quick):
    quick |= {"PERMISSION_CLASSES": ["rest_framework.permissions.AllowAny"], "ACCESS_CLASS": f"{__name__}.Shared"}

    response = APIClient().post(f"/api/sessions/{session.pk}/items/", {"items": [message()]}, format="json")

    assert (response.status_code, WriteIntent.objects.get().author) == (202, None)


@pytest.mark.parametrize(
    "user",
    [None, AnonymousUser(), SimpleNamespace(), SimpleNamespace(is_authenticated=True, pk=None)],
    ids=["none", "anonymous", "foreign", "without a row"],
)
def test_users_of_any_kind_without_a_row_have_nothing(session, user):
    access = SessionAccess(user)

    assert not access.visible(ConversationSession.objects.all()).exists()
    assert not any(access.allows(act, session) for act in Act)
    assert (access.author, access.is_staff) == (None, False)


def test_a_user_model_without_permissions_owns_what_it_owns(session):
    access = SessionAccess(SimpleNamespace(is_authenticated=True, pk=session.owner_id))
    operations.create_session(owner=None)

    assert list(access.visible(ConversationSession.objects.all())) == [session]
    assert [act for act in Act if access.allows(act, session)] == [Act.READ_ITEMS, Act.WRITE, Act.CANCEL]


def test_where_everybody_is_let_in_nobody_still_owns_nothing(session, quick):
    quick["PERMISSION_CLASSES"] = ["rest_framework.permissions.AllowAny"]
    operations.create_session(owner=None)
    anonymous = APIClient()

    assert anonymous.get("/api/sessions/").json()["results"] == []
    assert code_of(anonymous.post("/api/sessions/")) == (403, "not_authenticated")
    assert ConversationSession.objects.count() == 2
