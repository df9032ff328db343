"""Writes the items of a session to a file, one JSON object a line."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from convsessions import operations
from convsessions.exceptions import ContentUnreadable, RemoteReadFailed
from convsessions.items import codec
from convsessions.management.named import add_session_arguments, named_session
from convsessions.management.progress import Bar

SHOW_EVERY = 100


class Command(BaseCommand):
    help = (
        "Write the items of a session as JSONL in ASCII, the oldest first: the items that the remote history has, as "
        "they were given to this app; foreign ones as the API lists them. import_items reads the result, and what it "
        "imports comes out byte for byte the same."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_session_arguments(parser)
        parser.add_argument("--out", type=Path, metavar="FILE", help="by default stdout")
        parser.add_argument(
            "--pending",
            choices=("with", "without"),
            default="without",
            help="with: as if the writes that are still open were applied already (default: without)",
        )
        parser.add_argument("--remote", action="store_true", help="every item as the API lists it, with its id")
        parser.add_argument("--json", action="store_true", help="with --out: print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        began = time.monotonic()
        if options["json"] and options["out"] is None:
            raise CommandError("--json goes together with --out: stdout is for the items.")
        if options["remote"] and options["pending"] == "with":
            raise CommandError("--remote: what is pending is not there.")
        session = named_session(options)
        texts = _texts(session.pk, remote=options["remote"], pending=options["pending"] == "with")
        bar = Bar(self.stderr, "items")
        count = 0
        try:
            with self._opened(options["out"]) as out:
                for count, text in enumerate(texts, 1):
                    out.write(f"{text}\n")
                    if count % SHOW_EVERY == 0:
                        bar.show(count)
        except (RemoteReadFailed, ContentUnreadable) as error:
            raise CommandError(f"{error}. What was written ends after item {count}.") from None
        finally:
            bar.end()
        if options["json"]:
            seconds = round(time.monotonic() - began, 3)
            self.stdout.write(json.dumps({"session": str(session.pk), "items": count, "seconds": seconds}))
        elif options["out"] is not None:
            self.stdout.write(f"{count} items of session {session.pk}.")

    @contextmanager
    def _opened(self, path: Path | None) -> Iterator[Any]:
        """Where to write to, with line feeds whatever the platform. Raises CommandError."""
        if path is None:
            yield self.stdout
            return
        try:
            stream = path.open("w", encoding="ascii", newline="\n")
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}.") from None
        with stream:
            yield stream


def _texts(session_id: Any, *, remote: bool, pending: bool) -> Iterator[str]:
    if remote:
        return map(codec.encode, operations.iter_items(session_id))
    return operations.export_items(session_id, pending=pending)
