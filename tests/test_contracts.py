"""The architecture, and the state of the migrations, held by tests."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from django.core.management import call_command
from importlinter.cli import lint_imports

import convsessions


def test_imports_keep_to_the_layers():
    assert lint_imports(no_cache=True) == 0


@pytest.mark.django_db
def test_the_migrations_are_complete():
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_every_module_can_be_imported():
    for module in pkgutil.walk_packages(convsessions.__path__, "convsessions."):
        importlib.import_module(module.name)
