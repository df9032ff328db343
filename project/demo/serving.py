"""``manage.py demo --serve``: the site with the demo's data, and one write that only a person can decide."""

from __future__ import annotations

import secrets
import urllib.error
import urllib.request

from django.contrib.auth import get_user_model
from django.urls import reverse

from convsessions import operations
from convsessions.models import WriteIntent
from convsessions.states import WriteState

from .environment import LOOPBACK
from .patience import DemoFailed
from .site import Site
from .transcript import Item

USER = "admin"
GREETING: list[Item] = [
    {"type": "message", "role": "user", "content": "Is there a room with a view of the garden?"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "There is. Shall I book it?"}],
    },
]
DOUBLED: list[Item] = [
    {"type": "message", "role": "user", "content": "Yes, please: from 8 to 12 April."},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Booked: garden room, R-7/5512."}],
    },
]


def serve(site: Site, port: int) -> None:
    """Show the data until a signal comes: the web server joins the sandbox and the worker."""
    site.sandbox.settings(latency=0)
    write = _leave_ambiguous(site)
    password = secrets.token_urlsafe(9)
    get_user_model().objects.create_superuser(USER, password=password)
    address = f"http://{LOOPBACK}:{port}"
    site.start("web", "runserver", "--noreload", f"{LOOPBACK}:{port}")
    site.patience.until(lambda: _answers(f"{address}/"), "The web server answers")
    _invite(site, write, address, password)
    site.patience.until_interrupted()


def _leave_ambiguous(site: Site) -> WriteIntent:
    """A batch that stands twice in the remote history and whose reply was lost: which copy counts, a person says."""
    session = operations.create_session(key="to be repaired")
    first = operations.append_items(session.pk, GREETING)
    site.patience.until(lambda: operations.get_write(first.pk).settled, "The first write is saved")
    session.refresh_from_db()
    conversation_id = session.conversation_id or ""
    # What a gateway does that repeats a request: one copy more than was sent. It is there before the reply is lost,
    # so that the worker cannot look in between.
    site.sandbox.append_foreign(conversation_id, DOUBLED)
    site.sandbox.fault("lost_after", operation="append_items", conversation=conversation_id)
    write = operations.append_items(session.pk, DOUBLED)
    site.patience.until(lambda: operations.get_write(write.pk).needs_attention, "The doubled write is noticed")
    write = operations.get_write(write.pk)
    if write.state != WriteState.AMBIGUOUS:
        raise DemoFailed(f"The doubled write is {write.state}, not ambiguous.")
    return write


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10) as response:  # noqa: S310 - our own address
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _invite(site: Site, write: WriteIntent, address: str, password: str) -> None:
    say = site.screen.say
    page = reverse("admin:convsessions_writeintent_change", args=[write.pk])
    say()
    say(
        "In another session, a gateway sent a batch twice and lost the reply. The evidence shows two copies; whether "
        "one of them is to go, only a person can say. You are that person:"
    )
    say(f"{address}{page}", indent="  ")
    say(f"user: {USER}", indent="  ")
    say(f"password: {password}", indent="  ")
    api = reverse("convsessions_api:sessions")
    say(f"Start page: {address}/   REST API: {address}{api}   Ctrl-C ends everything.")
