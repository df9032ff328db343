"""The README's examples for other queues, word for word, with real workers of theirs."""

from __future__ import annotations

import pytest

from tests.histories import eventually, messages, texts

from .foreign import BLOCKS, ForeignSite, Variant
from .interpreters import uv

WITHOUT_DJANGO_Q = 'INSTALLED_APPS.remove("django_q")\ndel Q_CLUSTER\n'
RECORD = """
from convsessions import operations
session = operations.create_session()
print(operations.append_items(session.pk, [{"role": "user", "content": f"m{n}"} for n in range(45)]).pk)
"""
WAIT = """
from convsessions import operations
write = operations.wait_for_write("%s", timeout=30)
print(write.state, write.session.conversation_id)
"""
QUEUE = """
from celery import Celery
app = Celery("host", broker="filesystem://", include=["host.delivering"])
app.conf.broker_transport_options = {"data_folder_in": "messages", "data_folder_out": "messages",
                                     "data_folder_processed": "done", "control_folder": "control"}
"""
WORKER = """
import django
django.setup()
from host.queue import app
"""
CELERY = Variant(
    WITHOUT_DJANGO_Q + 'CONVSESSIONS["DISPATCHER"] = "host.delivering.dispatch"\nimport host.queue\n',
    {"host/delivering.py": BLOCKS["celery"], "host/queue.py": QUEUE, "host/worker.py": WORKER},
)
TASKS = Variant(
    WITHOUT_DJANGO_Q
    + 'CONVSESSIONS["DISPATCHER"] = "host.delivering.dispatch"\nINSTALLED_APPS += ["django_tasks_db"]\n'
    + 'TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}\n',
    {"host/delivering.py": BLOCKS["django-tasks"]},
)
IN_THREAD = Variant(
    WITHOUT_DJANGO_Q + 'CONVSESSIONS["DISPATCHER"] = "convsessions.inline.dispatch_in_thread"\n', has_queue=False
)


def check_delivery(site: ForeignSite, sandbox) -> None:
    (write,) = site.run_python(RECORD)
    state, conversation = site.run_python(WAIT % write)[-1].split()
    assert state == "saved"
    assert texts(sandbox.items(conversation)) == texts(messages(45))


def test_celery(foreign_site, sandbox):
    uv("pip", "install", "--quiet", "--python", foreign_site.python, "celery>=5.4")
    for folder in ("messages", "done", "control"):
        (foreign_site.folder / folder).mkdir(exist_ok=True)
    foreign_site.become("celery", CELERY)

    worker = ("-m", "celery", "-A", "host.worker", "worker", "--pool", "solo", "--loglevel", "INFO")
    with foreign_site.launched(*worker) as log:
        eventually(lambda: "ready" in log.read_text())
        check_delivery(foreign_site, sandbox)


def test_django_tasks(foreign_site, sandbox):
    if foreign_site.run("-m", "django", "--version").startswith("5."):
        pytest.skip("they come with Django 6")
    uv("pip", "install", "--quiet", "--python", foreign_site.python, "django-tasks-db")
    foreign_site.become("tasks", TASKS)

    with foreign_site.running("db_worker", "--interval", "0.1"):
        check_delivery(foreign_site, sandbox)


def test_in_a_thread_of_the_process_that_records(foreign_site, sandbox):
    """Without any worker: a process that ends by itself does what it has begun."""
    foreign_site.become("in_thread", IN_THREAD)
    check_delivery(foreign_site, sandbox)
