"""Other Python versions of this machine, by name, and virtual environments of them that hold the built wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NO_DOWNLOADS = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1"}


def lack(what: str) -> None:
    """Fail on CI, where everything has to be there; skip on a laptop."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


def find(version: str) -> str | None:
    """An interpreter of this version ("3.13"): this one, one on PATH, or one that pyenv has."""
    if version == ".".join(map(str, sys.version_info[:2])):
        return sys.executable
    name = f"python{version}"
    for command in filter(None, [shutil.which(name), *_of_pyenv(version)]):
        # pyenv has a shim for every version, which fails for those that are not chosen.
        if subprocess.run([command, "-c", "import sqlite3"], capture_output=True, check=False).returncode == 0:
            return command
    return None


def _of_pyenv(version: str) -> list[str]:
    if not shutil.which("pyenv"):
        return []
    names = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True, check=False).stdout.split()
    prefixes = [
        subprocess.run(["pyenv", "prefix", name], capture_output=True, text=True, check=False).stdout.strip()
        for name in names
        if name.startswith(f"{version}.")
    ]
    return [str(Path(prefix) / "bin" / f"python{version}") for prefix in prefixes]


def uv(*arguments: str | Path) -> None:
    """Run uv; what it cannot do is lacking."""
    command = [sys.executable, "-m", "uv", *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, **NO_DOWNLOADS}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lack(f"uv {arguments[0]}: {done.stderr[-2000:]}")


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout."""
    uv("build", "--quiet", "--wheel", "--out-dir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel, and nothing of the checkout."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, version: str, packages: list[str | Path], *options: str) -> Environment:
        """Raises Skipped, or Failed on CI, where the interpreter or a package is missing."""
        interpreter = find(version)
        if interpreter is None:
            lack(f"there is no Python {version}")
        uv("venv", "--quiet", "--python", str(interpreter), folder)
        made = cls(folder)
        uv("pip", "install", "--quiet", *options, "--python", made.python, *packages)
        return made

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"
