"""What the demo does when it cannot show what it is to show."""

from __future__ import annotations

import contextlib
import os

import pytest
from django.core.management import CommandError, call_command

from project.demo import scenario, site
from project.demo.comparison import Comparison
from project.demo.environment import demo_environment
from project.demo.patience import DemoFailed, Patience
from project.demo.processes import Service


@pytest.fixture
def service(tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(Service("part", list(arguments), tmp_path, dict(os.environ)))


def test_fails_when_the_history_is_not_exact(monkeypatch, tmp_path, capsys):
    summary = scenario.Summary(
        items=137, chunks=8, requests=14, duplicates=0, lost=1, in_order=True, reconciled=2, seconds=1.0
    )
    monkeypatch.setenv("CONVSESSIONS_DEMO_FOLDER", str(tmp_path / "demo"))
    monkeypatch.setattr(Patience, "watch_signals", lambda self: None)
    monkeypatch.setattr(site, "running_site", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(scenario, "play", lambda *_, **__: (summary, Comparison(1, 0, 0, in_order=True)))

    with pytest.raises(CommandError, match="not what was appended"):
        call_command("demo", "--json")

    assert '"lost": 1' in capsys.readouterr().out


def test_says_which_part_ended_by_itself_and_shows_its_log(service):
    patience = Patience()
    patience.services = [service("no_such_command")]

    with pytest.raises(DemoFailed, match=r"The part ended by itself[.]\n--- part ---\nUnknown command"):
        patience.until(lambda: False, "Never")


def test_does_not_wait_for_ever(service):
    with pytest.raises(DemoFailed, match="Never: this did not happen within 0 seconds"):
        Patience().until(lambda: False, "Never", seconds=0.01)


def test_a_killed_part_is_not_killed_again(service, monkeypatch):
    """Its process number may belong to somebody else by then."""
    part = service("shell")
    part.kill()
    monkeypatch.setattr(os, "killpg", lambda *_: pytest.fail("killed again"))

    part.stop()


def test_the_environment_brings_in_nothing_of_the_site(tmp_path):
    given = {
        "PATH": "/bin",
        "NO_PROXY": "intranet",
        "DATABASE_URL": "postgres://site",
        "REDIS_URL": "redis://site",
        "OPENAI_API_KEY": "sk-real",
        "OPENAI_ORG_ID": "org",
        "DJANGO_DEBUG": "0",
        "Q_WORKERS": "99",
        "CONVSESSIONS_CHUNK_ITEMS": "3",
    }

    env = demo_environment(tmp_path, given)

    assert env["PATH"] == "/bin"
    assert env["NO_PROXY"] == env["no_proxy"] == "intranet,127.0.0.1"
    assert env["DATABASE_URL"] == f"sqlite:///{tmp_path}/demo.sqlite3"
    assert env["Q_WORKERS"] == "2"
    assert not {"REDIS_URL", "OPENAI_API_KEY", "OPENAI_ORG_ID", "CONVSESSIONS_CHUNK_ITEMS"} & env.keys()
