"""Brings stored content under the newest key: after a change of keys, or once when encryption is turned on."""

from __future__ import annotations

import dataclasses
import json
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from convsessions import operations
from convsessions.exceptions import ContentUnreadable, InvalidInput
from convsessions.management.progress import counting


class Command(BaseCommand):
    help = (
        "Write the content in the journal anew under the newest key, and encrypt what was stored as it is. Run it once "
        "every process has the new key first in CIPHER_KEYS; after that, the old keys can go. It may be broken off and "
        "run again, beside workers. Exit status 1 if some content cannot be read with the present keys."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="say what would be written, and change nothing")
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        began = time.monotonic()
        try:
            done = operations.encrypt_content(dry_run=options["dry_run"], progress=counting(self.stderr, "rows"))
        except (InvalidInput, ContentUnreadable) as error:
            raise CommandError(f"{error}.") from None
        if options["json"]:
            seconds = round(time.monotonic() - began, 3)
            result = {**dataclasses.asdict(done), "dry_run": options["dry_run"], "seconds": seconds}
            self.stdout.write(json.dumps(result))
        else:
            verb = "would be written" if options["dry_run"] else "were written"
            self.stdout.write(
                f"{done.rewritten} chunks and popped items {verb} under the newest key; {done.current} were before."
            )
        if done.unreadable:
            raise CommandError(
                f"{done.unreadable} cannot be read with the present keys, and stay as they are: put their key back."
            )
