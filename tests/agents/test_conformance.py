"""The conformance suite on ours and on the SDK's own sessions; the README's table is what came out."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from agents import OpenAIConversationsSession, SQLiteSession
from openai import AsyncOpenAI

from convsessions.agents import DjangoConversationsSession
from convsessions.testing import CHECKS, Backend, NotApplicable, run_check

README = Path(__file__).resolve().parents[2] / "README.md"
PASSES, FAILS, HAS_NONE = "yes", "**no**", "-"


class OnTheSandbox(Backend):
    def __init__(self, sandbox):
        self.sandbox = sandbox

    def lose_replies(self, count):
        self.sandbox.fault("lost_after", operation="append_items", times=count)

    def requests(self):
        return len(self.sandbox.requests())

    def be_slow(self, seconds):
        self.sandbox.settings(latency=seconds)


class Ours(OnTheSandbox):
    def open(self, name, **options):
        return DjangoConversationsSession(key=name, **options)


class Conversations(OnTheSandbox):
    """The SDK's own. It has no names: the first object makes the conversation, the next ones are given its id."""

    def __init__(self, sandbox):
        super().__init__(sandbox)
        self.client = AsyncOpenAI(api_key="sk-test", base_url=sandbox.base_url)

    def open(self, name, **options):
        return OpenAIConversationsSession(openai_client=self.client, **options)

    async def open_again(self, name, session):
        return OpenAIConversationsSession(openai_client=self.client, conversation_id=session.session_id)


class SQLite(Backend):
    def __init__(self, path):
        self.path = path
        self.opened = []

    def open(self, name, **options):
        self.opened.append(SQLiteSession(name, self.path, **options))
        return self.opened[-1]


async def outcome(check, backend):
    try:
        async with asyncio.timeout(60):
            await run_check(check, backend)
    except NotApplicable:
        return HAS_NONE
    except Exception:  # noqa: BLE001 - whatever it is, it fails
        return FAILS
    return PASSES


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_ours_conforms(run, sandbox, check):
    run(run_check(check, Ours(sandbox)))


def test_the_readmes_table_is_what_the_sdks_sessions_do(run, sandbox, tmp_path):
    async def row(check):
        conversations, sqlite = Conversations(sandbox), SQLite(tmp_path / f"{check.name}.db")
        try:
            backends = (Ours(sandbox), conversations, sqlite)
            return check.says, *[await outcome(check, backend) for backend in backends]
        finally:
            await conversations.client.close()
            for session in sqlite.opened:
                session.close()

    found = []
    for check in CHECKS:
        sandbox.reset()
        found.append(run(row(check)))

    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", README.read_text(), re.MULTILINE)
    listed = [row for row in rows if row[0] in {says for says, *_ in found}]
    assert listed == found, "\n" + "\n".join(f"| {' | '.join(row)} |" for row in found)
