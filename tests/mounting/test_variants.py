"""The main job, and a first repair, in sites of all kinds: the wheel, the README's lines, real processes, real HTTP."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import pytest

from convsessions.sandbox.testing import SandboxProcess
from tests.histories import eventually, messages, texts

from .browser import Browser
from .foreign import PASSWORD, ForeignSite, Variant
from .inline import inline_parts
from .variants import VARIANTS

RECORD = """
from convsessions import operations
session = operations.create_session(key="ticket-1")
print(session.pk, operations.append_items(session.pk, [{"role": "user", "content": f"m{n}"} for n in range(45)]).pk)
"""
RECORD_AGAIN = """
from convsessions import operations
print(operations.append_items("%s", [{"role": "user", "content": "two"}]).pk)
"""
WAIT = """
import time
from convsessions import operations
while (state := operations.get_write("%s").state) not in %r:
    time.sleep(0.05)
print(state)
"""
CONVERSATION = """
from convsessions.models import ConversationSession
print(ConversationSession.objects.get(pk="%s").conversation_id)
"""
FORGET = """
from django.contrib.auth import get_user_model
from convsessions.models import ConversationSession, WriteIntent
get_user_model().objects.get(username="root").delete()
print(ConversationSession.objects.get(pk="%s").owner_id, set(WriteIntent.objects.values_list("author_id", flat=True)))
"""


class Story:
    """What a new user does with the site: over REST where it is mounted, else in Python."""

    def __init__(self, site: ForeignSite, variant: Variant, sandbox: SandboxProcess) -> None:
        self.site, self.variant, self.sandbox = site, variant, sandbox
        self.browser = Browser(site.address)
        self.browser.log_in(variant.admin, PASSWORD)

    def record(self) -> tuple[str, str]:
        """A session and its first write, of 45 items."""
        if self.variant.api is None:
            session, write = self.site.run_python(RECORD)[-1].split()
            return session, write
        body = {"key": "ticket-1", "items": messages(45)}
        reply = self.browser.call("POST", f"{self.variant.api}sessions/", body)
        assert reply.status == 201, reply.text
        assert reply.headers["Location"] == f"{self.site.address}{self.variant.api}sessions/{reply.json['id']}/"
        return reply.json["id"], reply.json["write"]["id"]

    def record_again(self, session: str) -> str:
        if self.variant.api is None:
            return self.site.run_python(RECORD_AGAIN % session)[-1]
        items = [{"type": "message", "role": "user", "content": "two"}]
        reply = self.browser.call("POST", f"{self.variant.api}sessions/{session}/items/", {"items": items})
        assert reply.status == 202, reply.text
        return reply.json["id"]

    def reaches(self, write: str, *states: str) -> str:
        """The state of the write once it is one of these."""
        if self.variant.api is None:
            return self.site.run_python(WAIT % (write, states))[-1]
        return eventually(lambda: (now := self._state(write)) in states and now, seconds=60)

    def _state(self, write: str) -> str:
        return self.browser.get(f"{self.variant.api}writes/{write}/").json["state"]

    def conversation(self, session: str) -> str:
        if self.variant.api is None:
            return self.site.run_python(CONVERSATION % session)[-1]
        return self.browser.get(f"{self.variant.api}sessions/{session}/").json["conversation_id"]


@contextlib.contextmanager
def running(site: ForeignSite, variant: Variant) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(site.running(*(["qcluster"] if variant.has_queue else ["deliver", "--watch", "0.1"])))
        stack.enter_context(site.serving())
        yield


@pytest.mark.parametrize("name", VARIANTS)
def test_mounts_without_a_warning_does_the_main_job_and_repairs_a_first_ambiguous_write(foreign_site, sandbox, name):
    mounts_and_repairs(foreign_site, sandbox, name, VARIANTS[name])


def mounts_and_repairs(site: ForeignSite, sandbox: SandboxProcess, name: str, variant: Variant) -> None:
    site.become(name, variant)
    with running(site, variant):
        story = Story(site, variant, sandbox)
        session, first = story.record()
        assert story.reaches(first, "saved", "refused", "ambiguous") == "saved"
        conversation = story.conversation(session)
        assert texts(sandbox.items(conversation)) == texts(messages(45))

        # A batch that stands twice in the remote history, and the reply to which was lost.
        sandbox.append_foreign(conversation, [{"type": "message", "role": "user", "content": "two"}])
        sandbox.fault("lost_after", operation="append_items")
        unclear = story.record_again(session)
        assert story.reaches(unclear, "saved", "refused", "ambiguous") == "ambiguous"

        repair(story, unclear)
        assert story.reaches(unclear, "saved", "cancelled") == "saved"
        assert texts(sandbox.items(conversation)) == [*texts(messages(45)), "two"]

        if variant.api is not None:
            find_by_owner(story, session)
            assert site.run_python(FORGET % session) == ["None {None}"]


def repair(story: Story, write: str) -> None:
    """In the admin: find it in the list, look at it, resolve it."""
    start = f"{story.variant.admin}convsessions/writeintent/"
    listed = story.browser.get(f"{start}?attention=yes")
    assert write in listed.text
    seen = story.browser.get(f"{start}{write}/change/")
    page = story.browser.get(f"{start}{write}/resolve/")
    evidence = re.search(r'name="evidence" value="([^"]*)"', page.text)
    assert evidence, page.text
    fields = {"resolution": "remove_duplicates", "reason": "our gateway repeats requests", "confirmed": "on"}
    done = story.browser.submit(f"{start}{write}/resolve/", {**fields, "evidence": evidence[1]})
    assert "Recorded" in done.text
    # Under a strict Content-Security-Policy, inline scripts and styles would do nothing.
    assert [inline_parts(reply.text) for reply in (listed, seen, page, done)] == [[]] * 4


def find_by_owner(story: Story, session: str) -> None:
    """In the admin, by the name; and over REST, where the owner finds it."""
    start = f"{story.variant.admin}convsessions/conversationsession/"
    assert session in story.browser.get(f"{start}?q=root").text
    assert session not in story.browser.get(f"{start}?q=somebody").text
    assert re.search(r"<dt>Owner</dt><dd>root</dd>", story.browser.get(f"{start}{session}/change/").text)
    listed = story.browser.get(f"{story.variant.api}sessions/").json["results"]
    assert [one["id"] for one in listed] == [session]
