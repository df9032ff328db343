"""The oldest versions of the packages that pyproject.toml allows, on the oldest Python."""

from __future__ import annotations

import tomllib

import pytest

from .foreign import ForeignSite
from .interpreters import ROOT, Environment
from .test_variants import VARIANTS, mounts_and_repairs


@pytest.fixture(scope="module")
def oldest_site(tmp_path_factory, wheel, sandbox_process) -> ForeignSite:
    folder = tmp_path_factory.mktemp("oldest")
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    # Given by name, they are what uv calls direct: their oldest versions are installed, and what fits them beside.
    environment = Environment.make(folder / "env", "3.11", [wheel, *needed], "--resolution", "lowest-direct")
    (folder / "site").mkdir()
    site = ForeignSite(folder / "site", environment, sandbox_process.base_url)
    site.start_project()
    return site


def test_the_oldest_versions_will_do(oldest_site, sandbox):
    assert oldest_site.run("-m", "django", "--version").strip() in {"5.2", "5.2.0"}
    mounts_and_repairs(oldest_site, sandbox, "five_lines", VARIANTS["five_lines"])
