"""UNKNOWN_ITEM_TYPES: what becomes of an append with an item of a type that nobody here knows."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from convsessions import operations
from convsessions.exceptions import InvalidItem
from convsessions.models import WriteIntent

ALIEN = {"type": "alien_call", "secret": "the content"}
KNOWN = {"role": "user", "content": "x"}

pytestmark = pytest.mark.django_db


@pytest.fixture
def said(caplog) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO)
    return lambda: caplog.messages


def test_by_default_it_is_recorded_and_its_type_logged_once_a_write(said):
    write = operations.append_items(operations.create_session().pk, [KNOWN, ALIEN, ALIEN])

    assert write.items_total == 3
    assert said() == ["unknown_item_type type=alien_call"]


def test_the_first_items_of_a_session_are_no_exception(said):
    operations.open_session(items=[ALIEN])

    assert said() == ["unknown_item_type type=alien_call"]


def test_what_a_caller_calls_a_type_is_not_logged_unless_it_looks_like_one(said):
    operations.append_items(operations.create_session().pk, [{"type": "My secret words"}])

    assert said() == ["unknown_item_type type=?"]


def test_with_pass_nothing_is_said(quick, said):
    quick["UNKNOWN_ITEM_TYPES"] = "pass"

    assert operations.append_items(operations.create_session().pk, [ALIEN]).items_total == 1
    assert said() == []


def test_with_refuse_nothing_of_the_write_is_recorded(quick):
    quick["UNKNOWN_ITEM_TYPES"] = "refuse"

    with pytest.raises(InvalidItem) as refused:
        operations.append_items(operations.create_session().pk, [KNOWN, ALIEN])

    assert (refused.value.field, refused.value.code) == ("items[1].type", "unknown_type")
    assert not WriteIntent.objects.exists()


def test_types_of_the_installed_client_are_known(quick, said):
    quick["UNKNOWN_ITEM_TYPES"] = "refuse"

    operations.append_items(operations.create_session().pk, [{"type": "configuration_update"}, KNOWN])

    assert said() == []
