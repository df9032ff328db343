"""Which call is a retry of which: the idempotency keys of one session object."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from convsessions.exceptions import WriteRefused
from convsessions.items import codec
from convsessions.states import WriteKind
from convsessions.values import check_text

MAX_SCOPE = 200
"""Characters of a scope: the rest of an idempotency key's 255 tells the calls within it apart."""

Call = tuple[WriteKind, str]


class Retries:
    """Gives each call its idempotency key.

    Without a `scope`, a call that raised is repeated by the next call of the same kind with the same items, unless
    another call succeeded in between. With a `scope` (such as the id of a web request), the n-th call with the same
    items is the same write in every process that uses the scope.
    """

    def __init__(self, scope: str | None) -> None:
        check_text("idempotency_key", scope, MAX_SCOPE)
        self.scope = scope
        self._counts: Counter[Call] = Counter()
        self._failed: dict[Call, str] = {}

    @contextmanager
    def key(self, kind: WriteKind, body: Any = None) -> Iterator[str]:
        """The key of a call, which is remembered if what is done within raises."""
        call = kind, codec.digest(json.dumps(body, sort_keys=True, default=repr))
        key = self._failed.get(call) or self._new(call)
        try:
            yield key
        except WriteRefused:
            self._succeeded(call)  # it is settled: the same call again is another one
            raise
        except BaseException:
            self._failed[call] = key
            raise
        self._succeeded(call)

    def _new(self, call: Call) -> str:
        if self.scope is None:
            return uuid.uuid4().hex
        kind, digest = call
        return f"{self.scope}/{kind.value}/{digest[:20]}/{self._counts[call] + 1}"

    def _succeeded(self, call: Call) -> None:
        self._counts[call] += 1
        self._failed.clear()
