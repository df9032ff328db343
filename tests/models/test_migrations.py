"""Migrations that make a column anew keep what is there, forwards and backwards."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection

from convsessions import operations
from convsessions.models import WriteIntent
from tests.histories import append

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def migrate():
    yield lambda name: call_command("migrate", "convsessions", name, verbosity=0)
    call_command("migrate", "convsessions", verbosity=0)


def columns_of_index(name: str) -> list[str]:
    with connection.cursor() as cursor:
        return connection.introspection.get_constraints(cursor, WriteIntent._meta.db_table)[name]["columns"]


def test_needs_attention_is_derived_again(session, migrate):
    names = ("ours", "key", "busy", "ambiguous")
    writes = dict(zip(names, [append(operations.create_session(), 1) for _ in names], strict=True))
    set_of = WriteIntent.objects.filter
    set_of(pk=writes["ours"].pk).update(hold_code="content_unreadable")
    set_of(pk=writes["key"].pk).update(hold_code="bad_key")
    set_of(pk=writes["busy"].pk).update(hold_code="locked")
    set_of(pk=writes["ambiguous"].pk).update(state="ambiguous", generation=0)

    def attention() -> list[str]:
        waiting = set(WriteIntent.objects.needing_attention().values_list("pk", flat=True))
        return [name for name, write in writes.items() if write.pk in waiting]

    assert attention() == ["ours", "key", "ambiguous"]
    migrate("0002")
    assert attention() == ["key", "ambiguous"]
    migrate("0003")
    assert attention() == ["ours", "key", "ambiguous"]
    assert columns_of_index("convsessions_attention") == ["needs_attention", "created_at"]
    with pytest.raises(Exception, match=r"(?i)constraint|check"):
        set_of(pk=writes["busy"].pk).update(state="lost")
