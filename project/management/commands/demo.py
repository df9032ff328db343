"""Shows the product do its real job, in a folder and with processes of its own."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import tempfile
import time
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from project.demo.environment import demo_environment, is_free
from project.demo.patience import DemoFailed, Interrupted, Patience
from project.demo.processes import MANAGE

FOLDER = "CONVSESSIONS_DEMO_FOLDER"
"""Names the folder of a process that has the demo's environment already; it is deleted at the end."""


class Command(BaseCommand):
    help = (
        "Append 137 items to a conversation through a real worker, lose a reply and kill the worker on the way, and "
        "compare what the remote history holds in the end. It never touches this site's database or the real API."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object as the last line of stdout")
        parser.add_argument("--serve", action="store_true", help="leave web, worker and sandbox running until Ctrl-C")
        parser.add_argument("--port", type=_port, default=8000, help="for --serve: where the web listens (8000)")

    def handle(self, *args: Any, **options: Any) -> None:
        if FOLDER not in os.environ:
            if options["serve"] and not is_free(options["port"]):
                raise CommandError(f"Port {options['port']} of 127.0.0.1 is taken. Choose another one with --port.")
            _start_over()
        folder = Path(os.environ[FOLDER])
        try:
            self._run(folder, options)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, folder: Path, options: dict[str, Any]) -> None:
        # Here, because it imports models, which must not meet the site's own settings.
        from project.demo import site  # noqa: PLC0415
        from project.demo.screen import Screen  # noqa: PLC0415

        logging.getLogger("django-q").setLevel(logging.WARNING)  # it reports each doorbell that it takes
        began = time.monotonic()
        screen, patience = Screen(sys.stderr if options["json"] else sys.stdout), Patience()
        patience.watch_signals()
        try:
            with site.running_site(folder, screen, patience) as running:
                self._show(running, began, options)
        except DemoFailed as error:
            raise CommandError(str(error)) from error
        except Interrupted:
            raise CommandError("Interrupted; everything that was started has ended.", returncode=130) from None
        finally:
            screen.end_bar()

    def _show(self, running: Any, began: float, options: dict[str, Any]) -> None:
        from project.demo import scenario, serving  # noqa: PLC0415 - as in _run

        summary, found = scenario.play(running, began=began)
        if options["json"]:
            self.stdout.write(json.dumps(summary.as_json()))
            self.stdout.flush()
        if not found.is_exact:
            raise DemoFailed("The remote history is not what was appended.")
        if options["serve"]:
            serving.serve(running, options["port"])


def _port(text: str) -> int:
    if not 0 < (port := int(text)) < 65536:
        raise ArgumentTypeError("a port is a number from 1 to 65535")
    return port


def _start_over() -> None:
    """Replace this process by one with the demo's environment: the same process id, so that signals find it."""
    folder = tempfile.mkdtemp(prefix="convsessions-demo-")
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        env = {**demo_environment(Path(folder)), FOLDER: folder}
        os.execve(sys.executable, [sys.executable, str(MANAGE), *sys.argv[1:]], env)  # noqa: S606 - our own manage.py
    finally:  # only if that failed
        shutil.rmtree(folder, ignore_errors=True)
