"""Where a session can be used: views, commands, tests, notebooks; and where it says that it cannot."""

from __future__ import annotations

import asyncio
import gc
import json

import pytest
from agents import Agent, Runner
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connection, transaction
from django.http import JsonResponse
from django.test import AsyncClient, Client, TestCase, override_settings
from django.urls import path

from convsessions import operations
from convsessions.agents import DjangoConversationsSession
from convsessions.delivery import threads
from convsessions.models import ConversationSession, WriteIntent
from convsessions.remote import clients
from tests.histories import messages, remote_texts, texts

from .scripted import ScriptedModel, says

SAID = ["Hi", "Hello."]


def agent():
    return Agent("a", model=ScriptedModel([says("Hello.")]))


@transaction.non_atomic_requests
def view(request):
    session = DjangoConversationsSession(key="k")
    result = async_to_sync(Runner.run)(agent(), "Hi", session=session)
    return JsonResponse({"said": result.final_output})


async def async_view(request):
    session = DjangoConversationsSession(key="k")
    result = await Runner.run(agent(), "Hi", session=session)
    return JsonResponse({"said": result.final_output})


urlpatterns = [path("view/", view), path("async-view/", async_view)]


class Command(BaseCommand):
    def handle(self, *args, **options):
        result = asyncio.run(Runner.run(agent(), "Hi", session=DjangoConversationsSession(key="k")))
        self.stdout.write(result.final_output)


@pytest.fixture(autouse=True)
def urls(settings):
    settings.ROOT_URLCONF = __name__


def the_history(sandbox):
    return remote_texts(sandbox, ConversationSession.objects.get())


def test_a_view(run, sandbox):
    assert Client().get("/view/").json() == {"said": "Hello."}
    assert the_history(sandbox) == SAID


def test_a_view_on_a_site_with_atomic_requests(run, sandbox, monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)

    assert Client().get("/view/").json() == {"said": "Hello."}


def test_an_async_view(run, sandbox):
    async def story():
        return await AsyncClient().get("/async-view/")

    assert json.loads(run(story()).content) == {"said": "Hello."}
    assert the_history(sandbox) == SAID


def test_a_sync_view_under_asgi(run, sandbox):
    async def story():
        return await AsyncClient().get("/view/")

    assert json.loads(run(story()).content) == {"said": "Hello."}
    assert the_history(sandbox) == SAID


def test_a_command(run, sandbox, capsys):
    call_command(Command())

    assert capsys.readouterr().out == "Hello.\n"
    assert the_history(sandbox) == SAID


def test_run_sync(run, sandbox):
    Runner.run_sync(agent(), "Hi", session=DjangoConversationsSession(key="k"))

    assert the_history(sandbox) == SAID
    loop = asyncio.get_event_loop_policy().get_event_loop()  # it is left to the next call
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    asyncio.set_event_loop(None)


def test_a_notebook_has_its_loop_running_already(run, sandbox):
    """Code of a cell is awaited in the running loop, in the main thread; there Django forbids its ORM."""

    async def cell():
        session = DjangoConversationsSession(key="k")
        await session.add_items(messages(1))
        return texts(await session.get_items()), session.session_id

    loop = asyncio.new_event_loop()
    try:
        first, _ = loop.run_until_complete(cell())
        again, _ = loop.run_until_complete(cell())
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
    assert (first, again) == (["m0"], ["m0", "m0"])


# -- transactions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["add_items", "get_items", "pop_item", "clear_session"])
@pytest.mark.parametrize("how", [asyncio.run, lambda coroutine: async_to_sync(lambda: coroutine)()])
@pytest.mark.filterwarnings("ignore:async_to_sync was passed a non-async")
def test_nothing_works_inside_a_transaction(run, sandbox, call, how):
    session = DjangoConversationsSession(key="k")
    arguments = [messages(1)] if call == "add_items" else []

    with transaction.atomic(), pytest.raises(RuntimeError, match="inside a transaction"):
        how(getattr(session, call)(*arguments))

    assert not WriteIntent.objects.exists()


@pytest.mark.usefixtures("sandbox")
class TestInsideATestCase(TestCase):
    """A host's ordinary test sees what the session wrote, and its transaction takes it all back."""

    async def test_a_run(self):
        await Runner.run(agent(), "Hi", session=DjangoConversationsSession(key="k"))

        assert await WriteIntent.objects.acount() == 2
        assert texts(await DjangoConversationsSession(key="k").get_items()) == SAID

    def test_a_view(self):
        with override_settings(ROOT_URLCONF=__name__):
            assert self.client.get("/view/").json() == {"said": "Hello."}


def test_recording_from_sync_code_joins_its_transaction(run, sandbox):
    session = operations.create_session()

    with transaction.atomic():
        async_to_sync(operations.aappend_items)(session.pk, messages(1))
        transaction.set_rollback(True)

    assert not WriteIntent.objects.exists()


# -- what stays behind -----------------------------------------------------------------------------------------------


def test_clients_end_with_their_event_loop(run, sandbox):
    async def story():
        one, two = DjangoConversationsSession(key="one"), DjangoConversationsSession(key="two")
        await asyncio.gather(one.add_items(messages(1)), two.add_items(messages(1)))
        return [client for kept in clients._KEPT.values() for client, _ in kept.values()]

    (client,) = run(story())

    assert client.is_closed()
    assert clients._KEPT == {}
    gc.collect()  # a warning about anything left open would fail the test


def test_threads_end_when_they_have_nothing_to_do(run, sandbox, monkeypatch):
    monkeypatch.setattr(threads, "IDLE_SECONDS", 0.1)

    async def story():
        await DjangoConversationsSession(key="k").add_items(messages(1))
        during = len(threads._threads()._alive)
        await asyncio.sleep(0.5)
        return during, len(threads._threads()._alive)

    during, after = run(story())
    assert 1 <= during <= 4
    assert after == 0


def test_async_reading_and_waiting(run, sandbox):
    async def story():
        session = await operations.acreate_session(key="k")
        write = await operations.aappend_items(session.pk, messages(3))
        await operations.adeliver(session.pk)
        settled = await operations.await_for_write(write.pk, timeout=5)
        page = await operations.aget_items(session.pk, limit=2, order="desc")
        return settled.state, texts(page["data"]), page["has_more"], (await operations.aget_session(key="k")).pk

    state, page, more, _ = run(story())
    assert (state, page, more) == ("saved", ["m2", "m1"], True)
