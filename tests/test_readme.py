"""The README's examples, run as they stand: each block after ``<!-- test: name -->`` is one of them."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import textwrap
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from convsessions.conf import RULES, Settings
from project.demo.environment import demo_environment
from project.demo.patience import Patience
from project.demo.processes import MANAGE, Service

ROOT = MANAGE.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = {
    name: textwrap.dedent(block)
    for name, block in re.findall(r"<!-- test: ([a-z-]+) -->\n *```[a-z]+\n(.*?) *```", TEXT, re.DOTALL)
}

AMBIGUOUS = """
from convsessions import operations

# A batch that stands twice in the remote history, and the reply to which was lost.
doubled = operations.create_session(key="doubled")
operations.wait_for_write(operations.append_items(doubled.pk, [{"role": "user", "content": "one"}]).pk, timeout=30)
doubled.refresh_from_db()
remote.append_foreign(doubled.conversation_id, [{"type": "message", "role": "user", "content": "two"}])
remote.fault("lost_after", operation="append_items", conversation=doubled.conversation_id)
unclear = operations.append_items(doubled.pk, [{"role": "user", "content": "two"}])
while not operations.get_write(unclear.pk).needs_attention:
    time.sleep(0.02)
"""

REPAIRED = """
print("then", operations.wait_for_write(unclear.pk, timeout=30).state)
print("texts", [item["content"][0]["text"] for item in operations.get_items(doubled.pk)["data"]])
"""

PRACTISED = """
from convsessions.models import WriteIntent
while not (write := WriteIntent.objects.get(session__key="practice")).needs_attention:
    time.sleep(0.05)
print(write.state, write.error_code)
"""

SCRIPTED = """
import asyncio
from agents import Agent, set_tracing_disabled
from django.test import RequestFactory
from tests.agents.scripted import ScriptedModel, calls, refund, says

set_tracing_disabled(True)
agent = Agent("a", model=ScriptedModel([says("Yes.")], [says("Still yes.")]))
"""

ASKED = """
async def story():
    print(await answer("ticket-1", "Is it on its way?"))
    reply = await ask(RequestFactory().get("/", {"question": "Are you sure?"}), "ticket-1")
    print(reply.status_code, __import__("json").loads(reply.content)["answer"])
    for item in await DjangoConversationsSession(key="ticket-1").get_items():
        print(item["content"][0]["text"])

asyncio.run(story())
"""

RESUMED = """
agent = Agent("a", model=ScriptedModel([calls("refund", "r1", order="7")], [says("Refunded.")]), tools=[refund])

async def story():
    session = DjangoConversationsSession(key="ticket-2")
    state = (await Runner.run(agent, "Refund 7", session=session)).to_state()
    state.approve(state.get_interruptions()[0])
    print(await resume(state, session))

asyncio.run(story())
"""


@dataclass(frozen=True)
class RunningSite:
    address: str
    env: dict[str, str]

    def run(self, *command: str | Path, **env: str) -> str:
        done = subprocess.run(
            command, env={**self.env, **env}, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run_python(self, code: str) -> list[str]:
        start = "import django, time\ndjango.setup()\n"
        return self.run(sys.executable, "-c", start + code).splitlines()


@pytest.fixture(scope="module")
def site(sandbox_process, tmp_path_factory) -> Iterator[RunningSite]:
    """The site in project/ with a worker, a web server and a user, talking to the sandbox."""
    folder = tmp_path_factory.mktemp("readme")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {**demo_environment(folder), "OPENAI_BASE_URL": sandbox_process.base_url}
    running = RunningSite(f"http://127.0.0.1:{port}", env)
    sandbox_process.reset()
    running.run(sys.executable, MANAGE, "migrate", "--verbosity", "0")
    user = {
        "DJANGO_SUPERUSER_PASSWORD": "secret",
        "DJANGO_SUPERUSER_USERNAME": "admin",
        "DJANGO_SUPERUSER_EMAIL": "admin@example.com",
    }
    running.run(sys.executable, MANAGE, "createsuperuser", "--noinput", **user)
    with (
        Service("worker", ["qcluster"], folder, env) as worker,
        Service("web", ["runserver", "--noreload", f"127.0.0.1:{port}"], folder, env) as web,
    ):
        patience = Patience()
        patience.services = [worker, web]
        patience.until(lambda: _answers(f"{running.address}/api/health/"), "The site answers")
        yield running


def test_python(site):
    said = site.run_python(BLOCKS["python"])

    assert said == ["saved 2", "user Where is my order?", "assistant On its way: it arrives on Friday."]


def test_agents_sdk(site):
    said = site.run_python(SCRIPTED + BLOCKS["agents"] + BLOCKS["agents-view"] + ASKED)

    assert said == ["Yes.", "200 Still yes.", "Is it on its way?", "Yes.", "Are you sure?", "Still yes."]


def test_agents_sdk_hand_over(site):
    said = site.run_python(SCRIPTED + BLOCKS["agents"] + BLOCKS["agents-hand-over"] + RESUMED)

    assert said == ["Refunded."]


def test_repairing_a_write(site, sandbox_process):
    remote = (
        "from convsessions.sandbox.testing import SandboxProcess\nfrom pathlib import Path\n"
        f"remote = SandboxProcess(Path())\nremote.base_url = {sandbox_process.base_url!r}\n"
    )

    said = site.run_python(remote + AMBIGUOUS + BLOCKS["repair"] + REPAIRED)

    assert re.fullmatch(r"[0-9a-f-]{36} duplicated \['remove_duplicates', .*'abandon'\]", said[0])
    assert said[1:] == ["then saved", "texts ['one', 'two']"]


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")
def test_rest(site):
    env = {"API": f"{site.address}/api", "AUTH": "admin:secret"}

    said = site.run("bash", "-euo", "pipefail", "-c", BLOCKS["rest"], **env)

    write, page = _objects(said)
    assert (write["kind"], write["state"], write["items_saved"]) == ("append", "saved", 1)
    assert [item["content"][0]["text"] for item in page["data"]] == ["Where is my order?"]


def test_rest_from_python(site):
    said = site.run(sys.executable, "-c", BLOCKS["rest-python"], API=f"{site.address}/api", AUTH="admin:secret")

    assert said.splitlines() == ["saved 1", "200 Where is my order?", "{'state': 'closed'}", "200 clear saved"]


def test_mounting(tmp_path):
    """In a project as Django itself begins one, without a warning."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "CONVSESSIONS_"))}
    env |= {"PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "sk-test"}
    env.pop("OPENAI_BASE_URL", None)

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(sys.executable, "-m", "django", "startproject", "host", str(tmp_path))
    with (tmp_path / "host" / "settings.py").open("a") as settings:
        settings.write(BLOCKS["mount-settings"] + BLOCKS["mount-sqlite"])
    with (tmp_path / "host" / "urls.py").open("a") as urls:
        urls.write("\n" + BLOCKS["mount-urls"])

    run(sys.executable, "manage.py", "check", "--fail-level", "WARNING")
    run(sys.executable, "manage.py", "migrate")
    health = (
        "from django.test import Client; from django_q.models import Schedule;"
        "print(Client(SERVER_NAME='localhost').get('/api/health/').json()['status'], Schedule.objects.count())"
    )

    assert run(sys.executable, "manage.py", "shell", "-v", "0", "-c", health) == "ok 1\n"

    with (tmp_path / "host" / "settings.py").open("a") as settings:
        settings.write(BLOCKS["openapi"])
    assert "/api/sessions/{session_id}/items/:" in run(sys.executable, "manage.py", "spectacular", "--validate")


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")
def test_practising_a_repair(site, sandbox_process):
    """With the sandbox of the tests instead of one on port 8001."""
    commands = BLOCKS["practice"].replace("http://127.0.0.1:8001/v1", sandbox_process.base_url)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    site.run("bash", "-euo", "pipefail", "-c", commands, PATH=path)

    said = site.run_python(
        PRACTISED + BLOCKS["repair"] + "print(operations.wait_for_write(write.pk, timeout=30).state)"
    )
    assert (said[0], said[-1]) == ("ambiguous duplicated", "saved")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd")
def test_the_unit_is_one_that_systemd_knows(tmp_path):
    unit = tmp_path / "site.service"
    unit.write_text(BLOCKS["systemd"].replace("/srv/site/.venv/bin/python", sys.executable))

    done = subprocess.run(
        ["systemd-analyze", "verify", unit],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_the_two_commands_are_one_line_each():
    for name, ending in (("demo", "manage.py demo"), ("tests", "pytest")):
        command = BLOCKS[name].rstrip("\n")

        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")
        assert command.endswith(ending)
        assert "\n" not in command


def test_commands_have_the_options_that_are_told_of_them():
    told = re.findall(r"manage\.py ([a-z_]+)((?: [^\s`]+)*)", TEXT)

    known = get_commands()
    assert {name for name, _ in told} >= {"migrate", "qcluster", "deliver", "after_restore", "convsessions_doctor"}
    for name, rest in told:
        parser = load_command_class(known[name], name).create_parser("manage.py", name)
        assert set(re.findall(r"--[a-z-]+", rest)) <= set(parser._option_string_actions), name


def test_settings_are_listed_with_their_defaults():
    rows = re.findall(r"^\| `([A-Z_]+)` \| `(.+?)` \|", TEXT, re.MULTILINE)

    listed = {name: ast.literal_eval(default) for name, default in rows}

    assert listed == {name: getattr(Settings, name) for name in RULES}


def test_addresses_are_those_of_the_api():
    from convsessions.api.urls import urlpatterns  # here: its views need the settings

    table = TEXT[TEXT.index("| method | address |") : TEXT.index("Errors are problem details")]
    listed = set(re.findall(r"`(/[^`]*/)`", table))

    assert listed == {"/" + re.sub(r"<str:\w+>", "{id}", str(pattern.pattern)) for pattern in urlpatterns}


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return response.status == 200
    except OSError:
        return False


def _objects(text: str) -> list[dict]:
    """The JSON objects that stand one after the other in `text`."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text.rstrip()):
        value, at = decoder.raw_decode(text, at)
        found.append(value)
    return found
