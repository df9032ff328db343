"""How many statements and commits this process makes, in whatever thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Counts:
    queries: int = 0
    commits: int = 0

    def since(self, earlier: Counts) -> Counts:
        return Counts(self.queries - earlier.queries, self.commits - earlier.commits)

    def now(self) -> Counts:
        return Counts(self.queries, self.commits)


def count_everything() -> Counts:
    """Count from now on; a statement outside a transaction is a commit, too, if it writes."""
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.backends.utils import CursorWrapper

    counts = Counts()
    execute, commit = CursorWrapper._execute_with_wrappers, BaseDatabaseWrapper._commit

    def counted_execute(self: Any, sql: str, *args: Any, **options: Any) -> Any:
        if not sql.startswith(("SAVEPOINT", "RELEASE", "BEGIN")):
            counts.queries += 1
            counts.commits += not self.db.in_atomic_block and not sql.startswith("SELECT")
        return execute(self, sql, *args, **options)

    def counted_commit(self: Any) -> Any:
        counts.commits += 1
        return commit(self)

    CursorWrapper._execute_with_wrappers, BaseDatabaseWrapper._commit = counted_execute, counted_commit
    return counts
