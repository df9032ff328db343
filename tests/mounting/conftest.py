"""Two foreign sites: the oldest and the newest Django that are supported, each made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from .foreign import ForeignSite
from .interpreters import Environment, build_wheel

PAIRS = {"django-5.2-python-3.11": ("django==5.2.*", "3.11"), "django-6-python-3.13": ("django>=6", "3.13")}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module", params=PAIRS)
def foreign_site(request, tmp_path_factory, wheel, sandbox_process) -> ForeignSite:
    django, python = PAIRS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    environment = Environment.make(folder / "env", python, [wheel, django])
    (folder / "site").mkdir()
    site = ForeignSite(folder / "site", environment, sandbox_process.base_url)
    site.start_project()
    return site
