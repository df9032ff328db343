"""Serves the sandbox alone: a Conversations API with its recorded behaviour, and faults on demand."""

from __future__ import annotations

import os
import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError
from django.db import connections, router
from django.db.migrations.executor import MigrationExecutor
from django.utils.module_loading import import_string

LABEL = "convsessions_sandbox"


class Command(BaseCommand):
    help = "Serve the sandbox, a Conversations API for tests and demos, from this site's database, until interrupted."
    requires_system_checks = ()  # it starts within a second, and uses nothing of the site but its database

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8001, help="0 takes a free one")
        parser.add_argument(
            "--latency",
            type=float,
            default=float(os.environ.get("CONVSESSIONS_SANDBOX_LATENCY", "0")),
            help="seconds before each request (default: CONVSESSIONS_SANDBOX_LATENCY, or 0)",
        )
        parser.add_argument("--no-control", action="store_true", help="answer 404 under v1/sandbox/")
        parser.add_argument("--migrate", action="store_true", help="create the sandbox's own tables first, no others")

    def handle(self, *args: Any, **options: Any) -> None:
        if not apps.is_installed("convsessions.sandbox"):
            raise CommandError("convsessions.sandbox is not in INSTALLED_APPS.")
        _prepare_tables(create=options["migrate"])
        # By name, and only now: the sandbox is an optional app, which nothing else in the package may depend on.
        server_class = import_string("convsessions.sandbox.server.SandboxServer")
        try:
            server = server_class(
                options["host"], options["port"], seconds=options["latency"], with_control=not options["no_control"]
            )
        except OSError as error:
            raise CommandError(f"Cannot listen on {options['host']}:{options['port']}: {error.strerror}") from error
        with server:
            _stop_on_signals(server.shutdown)
            self.stdout.write(f"sandbox listening on {server.url}")
            self.stdout.flush()
            server.serve_forever(poll_interval=0.1)


def _prepare_tables(*, create: bool) -> None:
    """Checks that the sandbox's migrations are applied, or applies them. Raises CommandError."""
    # Not the `migrate` command: its signals would have other apps fill tables that need not exist here.
    model = apps.get_model(LABEL, "SandboxConversation")
    connection = connections[router.db_for_write(model)]
    executor = MigrationExecutor(connection)
    targets = executor.loader.graph.leaf_nodes(LABEL)
    if create:
        executor.migrate(targets)
    elif executor.migration_plan(targets):
        raise CommandError(f"The tables of the sandbox are missing: run `manage.py migrate {LABEL}`, or add --migrate.")
    connection.close()


def _stop_on_signals(stop: Any) -> None:
    if threading.current_thread() is not threading.main_thread():
        return

    def interrupted(signum: int, frame: Any) -> None:
        # In a thread, for `shutdown` waits for the loop that this signal has interrupted.
        threading.Thread(target=stop, daemon=True).start()

    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, interrupted)
