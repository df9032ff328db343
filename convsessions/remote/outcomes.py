"""What the end of a request means: a closed table, and *unknown* for everything that is not in it.

Sources: **R** recorded traffic, **O** reported by third parties, **D** OpenAI's API document. Decisions use status,
`code` and `param`; message texts are neither read nor kept, since they may quote content.
"""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Final

from convsessions.states import HoldCode, Operation, OutcomeKind

from .calls import (
    AppendItems,
    CreateConversation,
    ListItems,
    RemoteCall,
    RetrieveConversation,
    UpdateConversation,
)


class Then(enum.Enum):
    """What has to follow an outcome."""

    PROCEED = enum.auto()
    RETRY = enum.auto()
    HOLD = enum.auto()
    REFUSE = enum.auto()
    RECONCILE = enum.auto()
    READ_FROM_START = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a request ended.

    `kind` and `then` say what is known and what follows; `hold` why to wait; `retry_after` seconds as told by the
    server, or None; `code`, `param`, `status`, `request_id` as answered; `data` the JSON object of a 2xx.
    """

    kind: OutcomeKind
    then: Then
    hold: HoldCode = HoldCode.NONE
    code: str = ""
    param: str = ""
    status: int | None = None
    retry_after: float | None = None
    request_id: str = ""
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items of a list reply. If it was asked for leniently, they may be anything."""
        return list(self.data["data"])

    @property
    def ids(self) -> list[str]:
        return [item["id"] for item in self.items]

    @property
    def cursor(self) -> str:
        """Where the page after this list begins: the id of its last item, or "" if it has none."""
        return (id_of(self.items[-1]) if self.items else "") or id_of({"id": self.data.get("last_id")})


# What failed before a byte of the request was sent: name resolution, refused, TLS, connect timeout, no free connection,
# a proxy that opened no tunnel, an address that is none.
# By name, because the client raises those of httpx2 (openai 3) or of httpx (openai 2, or a host's own client).
NEVER_SENT: Final = frozenset(
    {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol", "InvalidURL"}
)

MAX_CODE, MAX_PARAM, MAX_REQUEST_ID = 64, 128, 128


def applied(data: Mapping[str, Any], *, status: int, request_id: str = "", code: str = "") -> Outcome:
    return Outcome(
        kind=OutcomeKind.APPLIED, then=Then.PROCEED, data=data, status=status, request_id=request_id, code=code
    )


def unknown(code: str, *, status: int | None = None, request_id: str = "") -> Outcome:
    return Outcome(
        kind=OutcomeKind.UNKNOWN, then=Then.RECONCILE, code=code[:MAX_CODE], status=status, request_id=request_id
    )


def never_sent(code: str) -> Outcome:
    return Outcome(kind=OutcomeKind.NOT_APPLIED, then=Then.RETRY, hold=HoldCode.UNREACHABLE, code=code[:MAX_CODE])


def unencodable() -> Outcome:
    """The body cannot be made into bytes: nothing was sent, and nothing ever can be."""
    return Outcome(kind=OutcomeKind.NOT_APPLIED, then=Then.REFUSE, code="unencodable")


def no_client(error: BaseException) -> Outcome:
    """There is no usable client: nothing was sent, and a person has to mend the configuration or the key."""
    return Outcome(
        kind=OutcomeKind.NOT_APPLIED,
        then=Then.HOLD,
        hold=HoldCode.BAD_KEY,
        code=f"no_client_{type(error).__name__}"[:MAX_CODE],
    )


def of_exception(error: BaseException) -> Outcome:
    """The outcome of a request that ended in `error` instead of a response."""
    for link in _chain(error):
        if type(link).__name__ in NEVER_SENT:
            return never_sent(type(link).__name__)
        if _is_illegal_header(link):
            return no_client(link)
    return unknown(type(error.__cause__ or error).__name__)


def _is_illegal_header(error: BaseException) -> bool:
    """A key with a line break, or with letters beyond ASCII: the client found that before it sent anything.

    The name alone is not enough: a body that breaks off is a LocalProtocolError as well.
    """
    if isinstance(error, UnicodeEncodeError):
        return True
    return type(error).__name__ == "LocalProtocolError" and str(error).startswith("Illegal header")


def _chain(error: BaseException | None) -> list[BaseException]:
    links: list[BaseException] = []
    while error is not None and error not in links:
        links.append(error)
        error = error.__cause__
    return links


def of_response(call: RemoteCall, status: int, headers: Mapping[str, str], body: Any) -> Outcome:
    """The outcome of `call` when the server answered. `body`: the parsed JSON, or None where it is not JSON."""
    request_id = _text(headers, "x-request-id", MAX_REQUEST_ID)
    if 200 <= status < 300:
        # A gateway that knows but one status says so in the body.
        problem = "error_in_a_success" if _error_object(body) else _shape_problem(call, body)
        if problem:
            return unknown(problem, status=status, request_id=request_id)
        return applied(body, status=status, request_id=request_id)
    error = _error_object(body)
    code, param = _text(error, "code", MAX_CODE), _text(error, "param", MAX_PARAM)
    kind, then, hold = _row(call, status, code, param, known_shape=bool(error))
    if kind is OutcomeKind.APPLIED:
        return applied({}, status=status, request_id=request_id, code=ALREADY_GONE)
    return Outcome(
        kind=kind,
        then=then,
        hold=hold,
        code=code or f"http_{status}",
        param=param,
        status=status,
        retry_after=_retry_after(headers),
        request_id=request_id,
    )


Row = tuple[OutcomeKind, Then, HoldCode]

_UNKNOWN: Final[Row] = (OutcomeKind.UNKNOWN, Then.RECONCILE, HoldCode.NONE)
_REFUSED: Final[Row] = (OutcomeKind.NOT_APPLIED, Then.REFUSE, HoldCode.NONE)


def _held(hold: HoldCode) -> Row:
    return OutcomeKind.NOT_APPLIED, Then.HOLD, hold


BY_CODE: Final[dict[tuple[int, str], Row]] = {
    # O: the API says "busy" with 400, not with 409.
    (400, "conversation_locked"): (OutcomeKind.NOT_APPLIED, Then.RETRY, HoldCode.LOCKED),
    # R: nothing of this request was stored; but the item may be ours, from an earlier attempt.
    (400, "item_already_in_conversation"): (OutcomeKind.NOT_APPLIED, Then.RECONCILE, HoldCode.NONE),
    # D
    (429, "insufficient_quota"): _held(HoldCode.QUOTA),
}

BY_STATUS: Final[dict[int, Row]] = {
    400: _REFUSED,  # R: the batch is atomic, a 400 stores nothing of it
    401: _held(HoldCode.BAD_KEY),  # R
    403: _held(HoldCode.FORBIDDEN),  # D
    404: _held(HoldCode.MISSING),  # O: unknown conversation, or the key of another project
    413: _REFUSED,  # D
    422: _REFUSED,  # D
    429: (OutcomeKind.NOT_APPLIED, Then.RETRY, HoldCode.RATE_LIMITED),  # D, O
}

ALREADY_GONE: Final = "already_gone"
GONE_IS_DONE: Final = frozenset({Operation.DELETE_ITEM, Operation.DELETE_CONVERSATION})


def _row(call: RemoteCall, status: int, code: str, param: str, *, known_shape: bool) -> Row:
    if status == 404:
        if call.operation is Operation.LIST_ITEMS and param == "after":
            return OutcomeKind.NOT_APPLIED, Then.READ_FROM_START, HoldCode.NONE  # R: the cursor item was deleted
        if call.operation in GONE_IS_DONE:
            # A 404 that does not come from the API (a proxy's page) says nothing about the item.
            return (OutcomeKind.APPLIED, Then.PROCEED, HoldCode.NONE) if known_shape else _UNKNOWN
        if call.operation is Operation.APPEND_ITEMS and param.startswith("items"):
            return _REFUSED  # I: it names an item, not the conversation
        if call.operation is Operation.CREATE_CONVERSATION:
            return _held(HoldCode.UNREACHABLE)  # no such endpoint: a wrong base URL
    return BY_CODE.get((status, code)) or BY_STATUS.get(status, _UNKNOWN)


def _shape_problem(call: RemoteCall, body: Any) -> str:
    """Why the body of a 2xx is not what `call` expects; empty if it is."""
    if not isinstance(body, dict):
        return "not_a_json_object"
    is_conversation = isinstance(call, CreateConversation | RetrieveConversation | UpdateConversation)
    if is_conversation and not _is_id(body.get("id")):
        return "no_conversation_id"
    if isinstance(call, AppendItems | ListItems):
        data = body.get("data")
        is_lenient = isinstance(call, ListItems) and call.lenient
        if not isinstance(data, list) or not (is_lenient or all(map(id_of, data))):
            return "no_item_list"
        if isinstance(call, AppendItems) and len(data) != call.count:
            return "wrong_number_of_ids"
        if isinstance(call, ListItems) and not isinstance(body.get("has_more"), bool):
            return "no_has_more"
    return ""


def id_of(item: Any) -> str:
    """The id of an item as a server listed it, or "" if it has none that could be one."""
    given = item.get("id") if isinstance(item, dict) else None
    return str(given) if _is_id(given) else ""


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 128 and value.isascii() and value.isprintable()


def _error_object(body: Any) -> Mapping[str, Any]:
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}


def _text(given: Mapping[str, Any], name: str, length: int) -> str:
    value = given.get(name)
    return value[:length] if isinstance(value, str) and value.isprintable() else ""


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as the server tells, in seconds or as an HTTP date (RFC 9110 §10.2.3); None when it does not."""
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
