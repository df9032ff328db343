"""Users, and what refers to them: in the database of the journal, and where routers keep the journal elsewhere."""

from __future__ import annotations

import contextlib
import copy

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import DatabaseError, connections, router, transaction
from django.db.models.deletion import Collector
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django_q.models import Schedule

from convsessions import operations
from convsessions.enqueue import SWEEP_TASK
from convsessions.models import ConversationSession, Reconciliation, WriteIntent
from convsessions.models.users import set_null
from convsessions.operations.diagnosis import diagnose
from tests.histories import messages

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")


class JournalElsewhere:
    """A router with an opinion on the journal, and on nothing else; nor does it allow relations."""

    def db_for_read(self, model, **hints):
        return "journal" if model._meta.app_label == "convsessions" else None

    db_for_write = db_for_read

    def allow_migrate(self, db, app_label, **hints):
        return (db == "journal") == (app_label == "convsessions")


class UsersElsewhere(JournalElsewhere):
    def db_for_write(self, model, **hints):
        return "users" if model._meta.app_label == "auth" else self.db_for_read(model)


@pytest.fixture(scope="module", params=["here", "elsewhere"], autouse=True)
def journal(request, django_db_setup, django_db_blocker):
    """The alias of the journal's database: that of the users, or one of its own of the same kind."""
    if request.param == "here":
        yield "default"
        return
    database = copy.deepcopy(connections["default"].settings_dict)
    database["TEST"]["NAME"] = f"{database['NAME']}_journal"
    connections.settings["journal"] = database
    creation = connections["journal"].creation
    with override_settings(DATABASE_ROUTERS=[f"{__name__}.JournalElsewhere"]), django_db_blocker.unblock():
        creation.create_test_db(verbosity=0, autoclobber=True)
        yield "journal"
        creation.destroy_test_db(database["NAME"], verbosity=0)
    connections["journal"].close()
    del connections["journal"], connections.settings["journal"]


@pytest.fixture
def people(journal):
    """`people("ada", …)`: users, each of whom owns a session, wrote to it, and took the write back."""

    def make(*names):
        made = [get_user_model().objects.create_user(name) for name in names]
        for user in made:
            session = operations.create_session(owner=user, key="notes")
            write = operations.append_items(session.pk, messages(1), author=user)
            operations.cancel_write(write.pk, actor=user, reason="not needed")
        return made

    return make


def named() -> list[list[str]]:
    """Whom the owners, authors and actors of the journal are, by their names."""
    columns = (ConversationSession, "owner"), (WriteIntent, "author"), (Reconciliation, "actor")
    return [
        sorted(getattr(user, "username", "nobody") for user in (getattr(row, field) for row in model.objects.all()))
        for model, field in columns
    ]


@pytest.fixture
def root():
    get_user_model().objects.create_superuser("root", "root@example.com", "secret")
    client = Client()
    assert client.login(username="root", password="secret")
    return client


# -- reading and recording -------------------------------------------------------------------------------------------


def test_the_rows_are_where_the_test_says(journal, people):
    people("ada")
    assert ConversationSession.objects.using(journal).count() == 1
    assert get_user_model().objects.using("default").count() == 1


def test_users_are_read_from_where_they_are_one_by_one_and_for_a_list_at_once(people):
    people("ada", "bob")
    assert named() == [["ada", "bob"]] * 3
    with CaptureQueriesContext(connections["default"]) as captured:
        sessions = list(ConversationSession.objects.prefetch_related("owner"))
        assert sorted(session.owner.username for session in sessions) == ["ada", "bob"]
    assert len([query for query in captured if "auth_user" in query["sql"]]) == 1


def test_the_user_that_was_given_is_not_read_again(people):
    (ada,) = people("ada")
    session = operations.create_session(owner=ada)
    with CaptureQueriesContext(connections["default"]) as captured:
        assert session.owner is ada
    assert len(captured) == 0


def test_only_a_user_can_be_an_owner(people):
    with pytest.raises(ValueError, match="must be a"):
        operations.create_session(owner="ada")


def test_an_id_that_is_nobodys_counts_as_nobody(people):
    """Users that were deleted past the ORM: no database holds the reference."""
    (ada,) = people("ada")
    get_user_model().objects.filter(pk=ada.pk)._raw_delete("default")
    assert named() == [["nobody"]] * 3
    assert ConversationSession.objects.prefetch_related("owner").get().owner is None
    assert ConversationSession.objects.get().owner_id == ada.pk


def test_the_user_of_a_row_from_another_database_is_read_from_there():
    """A database for each tenant, with users and a journal of its own."""
    row = ConversationSession(owner_id=1)
    row._state.db = "tenant"
    assert ConversationSession.owner.get_queryset(instance=row).db == "tenant"
    assert ConversationSession.owner.get_prefetch_querysets([row])[0].db == "tenant"


# -- deleting --------------------------------------------------------------------------------------------------------


def test_a_deleted_user_leaves_the_rows_to_nobody(people):
    ada, _bob = people("ada", "bob")
    ada.delete()
    assert named() == [["bob", "nobody"]] * 3
    assert list(ConversationSession.objects.values_list("owner_id", flat=True).filter(owner=None)) == [None]


def test_users_that_are_deleted_together_cost_one_statement_for_each_reference(journal, people):
    people("ada", "bob", "carol", "dan")
    get_user_model().objects.create_user("without any rows")
    with CaptureQueriesContext(connections[journal]) as captured:
        get_user_model().objects.exclude(username="dan").delete()
    assert named() == [["dan", "nobody", "nobody", "nobody"]] * 3
    assert len([query for query in captured if query["sql"].startswith("UPDATE")]) == 3


def test_many_users_are_deleted_at_once(people):
    people("ada")
    users = get_user_model()
    users.objects.bulk_create([users(username=f"user-{number}") for number in range(2500)])
    users.objects.all().delete()
    assert named() == [["nobody"]] * 3


def test_the_admin_shows_what_it_would_delete_and_deletes_it_when_told_so(people, root):
    ada, _bob = people("ada", "bob")
    address = reverse("admin:auth_user_delete", args=[ada.pk])
    assert root.get(address).status_code == 200
    assert named() == [["ada", "bob"]] * 3
    assert root.post(address, {"post": "yes"}).status_code == 302
    assert named() == [["bob", "nobody"]] * 3
    chosen = {"action": "delete_selected", "_selected_action": [user.pk for user in get_user_model().objects.all()[1:]]}
    assert root.post(reverse("admin:auth_user_changelist"), {**chosen, "post": "yes"}).status_code == 302
    assert named()[0][-1] == "nobody"


def test_a_deletion_that_is_rolled_back_changes_nothing(people):
    (ada,) = people("ada")
    with transaction.atomic():
        ada.delete()
        transaction.set_rollback(True)
    assert named() == [["ada"]] * 3


def test_where_the_journal_cannot_be_changed_the_deletion_fails_only_if_it_shares_the_database(journal, people, caplog):
    (ada,) = people("ada")
    with without_sessions(journal):
        if journal == "default":
            with pytest.raises(DatabaseError):
                ada.delete()
        else:
            ada.delete()
    logged = [record.getMessage().split(" error=")[0] for record in caplog.records]
    if journal == "default":
        assert (named(), logged) == ([["ada"]] * 3, [])
    else:
        assert (named(), logged) == ([["nobody"]] * 3, ["user_not_forgotten fields=owner"])
        assert not get_user_model().objects.exists()


@contextlib.contextmanager
def without_sessions(using):
    """While their table has another name."""
    table = ConversationSession._meta.db_table
    with connections[using].cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO away")
        try:
            yield
        finally:
            cursor.execute(f"ALTER TABLE away RENAME TO {table}")


def test_a_user_of_another_database_than_the_sites_is_not_the_journals(journal, settings):
    field = ConversationSession._meta.get_field("owner")
    rows = ConversationSession.objects.filter(owner__in=[1])
    if journal == "default":
        legacy = Collector("legacy")
        set_null(legacy, field, rows.using("legacy"), "legacy")
        # No router says that it has no journal of its own.
        assert [found.db for (found,) in legacy.field_updates.values()] == ["legacy"]
        return
    settings.DATABASE_ROUTERS = [f"{__name__}.UsersElsewhere"]
    assert router.db_for_write(get_user_model()) == "users"
    legacy = Collector("default")
    set_null(legacy, field, rows.using("default"), "default")
    assert legacy.field_updates == {}


# -- the pages and the API -------------------------------------------------------------------------------------------


def test_the_permissions_are_where_the_users_are(people):
    held = Permission.objects.filter(content_type__app_label="convsessions", codename="resolve_writeintent")
    (ada,) = people("ada")
    ada.user_permissions.set(held)
    assert get_user_model().objects.get(pk=ada.pk).has_perm("convsessions.resolve_writeintent")


def test_operators_list_search_look_and_act(people, root):
    people("ada", "bob")
    write = WriteIntent.objects.first()
    open_one = operations.append_items(write.session_id, messages(1), author=write.author)
    for model in ("conversationsession", "writeintent"):
        shown = root.get(reverse(f"admin:convsessions_{model}_changelist"))
        assert shown.status_code == 200
        found = root.get(reverse(f"admin:convsessions_{model}_changelist"), {"q": "ada"}).context["cl"].result_list
        assert {str(getattr(row, "author", None) or row.owner) for row in found} == {"ada"}
        of_one = root.get(reverse(f"admin:convsessions_{model}_change", args=[found[0].pk])).content.decode()
        assert "ada" in of_one
    done = root.post(reverse("admin:convsessions_writeintent_cancel", args=[open_one.pk]), {"reason": "by mistake"})
    assert done.status_code == 302
    assert operations.get_write(open_one.pk).state == "cancelled"
    assert LogEntry.objects.get().user.username == "root"


def test_the_api_shows_owners_their_own(people):
    ada, _bob = people("ada", "bob")
    client = Client()
    client.force_login(ada)
    (listed,) = client.get(reverse("convsessions_api:sessions")).json()["results"]
    assert str(ConversationSession.objects.get(owner=ada).pk) == listed["id"]
    made = client.post(reverse("convsessions_api:sessions"), {"key": "more"}, content_type="application/json")
    assert made.status_code == 201
    assert ConversationSession.objects.filter(owner=ada).count() == 2


def test_the_doctor_looks_for_the_sweep_where_the_queue_is(people):
    def codes():
        return [found.code for found in diagnose(with_api=False)]

    assert "convsessions.W010" not in codes()
    Schedule.objects.filter(func=SWEEP_TASK).delete()
    assert "convsessions.W010" in codes()
