"""To be run once on a journal that was restored from a backup, before anything delivers from it."""

from __future__ import annotations

import dataclasses
import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from convsessions import operations
from convsessions.management.progress import Bar


class Command(BaseCommand):
    help = (
        "Run this once after the database was restored from a backup, before workers and sites start: what the backup "
        "holds as open may have been sent since, so that it is looked for in the remote history before it is sent. "
        "It makes no request itself."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="count, and change nothing")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        bar = Bar(self.stderr, "sessions")
        dry_run = options["dry_run"]
        done = operations.after_restore(
            dry_run=dry_run, progress=lambda count, total: bar.show(count, count / max(total, 1))
        )
        bar.end()
        if options["json"]:
            self.stdout.write(json.dumps({**dataclasses.asdict(done), "dry_run": dry_run}))
            return
        would = "would be" if dry_run else "are"
        say = self.stdout.write
        say(f"Sessions with open writes: {done.sessions}")
        say(f"Appends that {would} looked for in the history before anything of them is sent: {done.appends}")
        if done.pops:
            say(f"Pops that {would} left to a person, for nobody can tell whether they were done: {done.pops}")
        if done.ambiguous:
            say(f"Writes that were ambiguous already: {done.ambiguous}")
        if done.without_conversation:
            say(f"Sessions without a conversation in the backup: {done.without_conversation}")
            say("They begin another one; one that was created since stays behind at the API.")
