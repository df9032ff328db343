"""The settings of the REST API, and what the system checks say about wrong ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.checks import run_checks
from rest_framework.authentication import BaseAuthentication
from rest_framework.test import APIClient

from convsessions import operations

from .conftest import code_of, person

ROOT = Path(__file__).resolve().parents[2]


def errors():
    return [found for found in run_checks(tags=["convsessions"]) if found.is_serious()]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ACCESS_CLASS", "convsessions.api.access.Nothing"),
        ("PERMISSION_CLASSES", ["rest_framework.permissions.IsAuthenticated", "nowhere.Permission"]),
        ("AUTHENTICATION_CLASSES", ("nowhere.Authentication",)),
    ],
)
def test_a_class_that_cannot_be_imported_is_an_error(quick, name, value):
    quick[name] = value

    [found] = errors()

    assert found.id == "convsessions.E002"
    assert name in found.msg


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ACCESS_CLASS", None),
        ("PERMISSION_CLASSES", "rest_framework.permissions.AllowAny"),
        ("AUTHENTICATION_CLASSES", [1]),
    ],
)
def test_a_value_of_the_wrong_kind_is_an_error(quick, name, value):
    quick[name] = value

    assert [found.id for found in errors()] == ["convsessions.E001"]


class ByName(BaseAuthentication):
    """Believes what a gateway in front of the site says."""

    def authenticate(self, request):
        from django.contrib.auth import get_user_model

        name = request.headers.get("X-User")
        return (get_user_model().objects.get(username=name), None) if name else None

    def authenticate_header(self, request):
        return "X-User"


@pytest.mark.django_db(transaction=True)
def test_the_authentication_classes_of_the_setting_decide(quick):
    quick["AUTHENTICATION_CLASSES"] = [f"{__name__}.ByName"]
    session = operations.create_session(owner=person("ada").user)
    client = APIClient()

    response = client.get(f"/api/sessions/{session.pk}/", headers={"X-User": "ada"})

    assert (response.status_code, response.json()["id"]) == (200, str(session.pk))
    anonymous = client.get(f"/api/sessions/{session.pk}/")
    assert code_of(anonymous) == (401, "not_authenticated")
    assert anonymous["WWW-Authenticate"] == "X-User"
    assert client.get("/api/health/").status_code == 200


SWAPPED = """
import uuid
import django
from django.conf import settings
settings.configure(
    SECRET_KEY="x", AUTH_USER_MODEL="people.Person", USE_TZ=True, ALLOWED_HOSTS=["*"],
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "rest_framework", "people", "convsessions"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:",
                           "OPTIONS": {"transaction_mode": "IMMEDIATE"}}},
    ROOT_URLCONF="people.urls", DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    CONVSESSIONS={"DISPATCHER": "convsessions.enqueue.dispatch_nowhere"},
)
django.setup()
from django.core.management import call_command
call_command("migrate", run_syncdb=True, verbosity=0)
from django.contrib.auth import get_user_model
from rest_framework.test import APIClient
ada, eve = (APIClient() for _ in range(2))
for client, name in ((ada, "ada"), (eve, "eve")):
    client.person = get_user_model().objects.create_user(email=name + "@example.com")
    client.force_authenticate(client.person)
made = ada.post("/sessions/", {"key": "k", "items": [{"role": "user", "content": "x"}]}, format="json")
path = "/sessions/" + made.json()["id"] + "/"
assert made.status_code == 201 and made.json()["owner"] == str(ada.person.pk), made.content
assert ada.get(path).status_code == 200 and eve.get(path).status_code == 404
assert len(ada.get("/sessions/?key=k").json()["results"]) == 1 and eve.get("/sessions/").json()["results"] == []
assert made.json()["write"]["author"] == str(ada.person.pk)
ada.person.delete()
print("done")
"""

PEOPLE = """
import uuid
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models

class People(BaseUserManager):
    def create_user(self, email, password=None):
        person = self.model(email=email)
        person.set_unusable_password()
        person.save()
        return person

class Person(AbstractBaseUser, PermissionsMixin):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    email = models.EmailField(unique=True)
    USERNAME_FIELD = "email"
    objects = People()
    class Meta:
        app_label = "people"
"""

URLS = """
from django.urls import include, path
urlpatterns = [path("", include("convsessions.api.urls"))]
"""


def test_a_site_with_a_user_model_of_its_own(tmp_path):
    """With a UUID as its key and without names: as unlike Django's as it may be."""
    (tmp_path / "people").mkdir()
    (tmp_path / "people" / "__init__.py").touch()
    (tmp_path / "people" / "models.py").write_text(PEOPLE)
    (tmp_path / "people" / "urls.py").write_text(URLS)
    path = {"PYTHONPATH": f"{ROOT}:{tmp_path}"}

    done = subprocess.run([sys.executable, "-c", SWAPPED], env=path, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("done\n", "")
