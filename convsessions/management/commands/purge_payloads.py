"""Removes the content of writes that settled long ago: for cron."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from convsessions import operations
from convsessions.exceptions import InvalidInput
from convsessions.management.progress import counting


class Command(BaseCommand):
    help = (
        "Remove the content of writes that settled more than N days ago. Ids, digests and states stay, "
        "and nothing changes at the API. Open writes, and refused ones that may be tried again, are left alone."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--days", type=float, metavar="N", help="by default the setting RETENTION_DAYS")
        parser.add_argument(
            "--refused", action="store_true", help="refused writes, too: they cannot be tried again then"
        )
        parser.add_argument("--dry-run", action="store_true", help="say what would be purged, and change nothing")
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        began = time.monotonic()
        try:
            purged = operations.purge_payloads(
                options["days"],
                refused=options["refused"],
                dry_run=options["dry_run"],
                progress=counting(self.stderr, "writes"),
            )
        except InvalidInput as error:
            raise CommandError(f"--{error}.") from None
        if options["json"]:
            result = {"writes": purged.writes, "kept": purged.kept, "before": purged.before.isoformat()}
            seconds = round(time.monotonic() - began, 3)
            self.stdout.write(json.dumps({**result, "dry_run": options["dry_run"], "seconds": seconds}))
            return
        verb = "would be purged" if options["dry_run"] else "purged"
        self.stdout.write(f"{purged.writes} writes {verb} that settled before {purged.before:%Y-%m-%d %H:%M}.")
        if purged.kept:
            self.stdout.write(f"{purged.kept} refused writes keep their content, for they may be tried again.")
