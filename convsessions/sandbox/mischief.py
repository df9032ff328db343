"""Each kind of fault as what it does to one exchange. "Stored" means: carried out, whatever the operation is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from django.db import connections
from django.http.response import HttpResponseBase

from convsessions.items import codec

from . import store
from .behaviour import Item, prepare_batch
from .distortion import altered, each, without
from .endpoints import Twist, empty_page, endless, shortened
from .errors import ApiError, bad_key, invalid, server_error
from .exchange import Exchange, encoded

Options = dict[str, Any]
Mischief = Callable[[Exchange, Options], HttpResponseBase]

HTML = b"<!doctype html><title>Bad gateway</title><h1>Bad gateway</h1>"
FOREIGN_ITEM: Item = {"type": "message", "role": "assistant", "content": "A foreign writer was here."}


def normal(exchange: Exchange, _: Options) -> HttpResponseBase:
    return exchange.reply(exchange.apply())


def lost_before(exchange: Exchange, _: Options) -> HttpResponseBase:
    """Nothing stored, no reply."""
    return exchange.drop()


def lost_after(exchange: Exchange, _: Options) -> HttpResponseBase:
    """Stored, no reply."""
    exchange.apply()
    return exchange.drop()


def error_before(exchange: Exchange, options: Options) -> HttpResponseBase:
    """Nothing stored; answers `status` (500) with `code` and `param`, or with `body` (an object) instead of them."""
    return exchange.refuse(_error(options))


def error_after(exchange: Exchange, options: Options) -> HttpResponseBase:
    """Stored; answers as `error_before` does."""
    exchange.apply()
    return exchange.refuse(_error(options))


def hang_before(exchange: Exchange, options: Options) -> HttpResponseBase:
    """Stores only after `seconds`, though the client may be gone by then; then answers."""
    _wait(options)
    return normal(exchange, options)


def hang_after(exchange: Exchange, options: Options) -> HttpResponseBase:
    """Stored at once; the reply comes after `seconds`."""
    answer = exchange.apply()
    _wait(options)
    return exchange.reply(answer)


def hang_lost(exchange: Exchange, options: Options) -> HttpResponseBase:
    """Nothing stored, ever; the connection is dropped after `seconds`."""
    _wait(options)
    return exchange.drop()


def late_apply(exchange: Exchange, options: Options) -> HttpResponseBase:
    """Drops the connection, or answers `status`, at once; stores after `seconds`, from a thread of its own."""
    timer = threading.Timer(_seconds(options), _apply_late, [exchange])
    timer.daemon = True
    timer.start()
    return exchange.refuse(_error(options)) if options.get("status") else exchange.drop()


def trickle(exchange: Exchange, options: Options) -> HttpResponseBase:
    """Stored; the body comes a byte every `seconds`."""
    answer = exchange.apply()

    def drip(body: bytes) -> Iterator[bytes]:
        try:
            for index in range(len(body)):
                if index == len(body) - 1:
                    exchange.finish(answer.status)
                yield body[index : index + 1]
                _wait(options)
        finally:
            exchange.finish(answer.status)

    return exchange.stream(answer, drip)


def truncated(exchange: Exchange, options: Options) -> HttpResponseBase:
    """Stored; half of the body comes. With `honest`, its length says so, and the reply is complete but not JSON."""
    answer = exchange.apply()
    if not options.get("honest"):
        return exchange.cut(answer)
    body = encoded(answer)
    return exchange.send(body[: len(body) // 2], "application/json", status=answer.status)


def html(exchange: Exchange, _: Options) -> HttpResponseBase:
    """Stored; a 200 with the page of some gateway."""
    exchange.apply()
    return exchange.send(HTML, "text/html")


def html_before(exchange: Exchange, _: Options) -> HttpResponseBase:
    """Not stored; a 200 with the page of some gateway."""
    return exchange.send(HTML, "text/html")


def fewer_ids(exchange: Exchange, _: Options) -> HttpResponseBase:
    """Stored in full; the reply lacks the last item."""
    return exchange.reply(shortened(exchange.apply()))


def twice(exchange: Exchange, options: Options) -> HttpResponseBase:
    """Stored twice, as by a proxy that retries; the first reply, or with `lost` none."""
    answer = exchange.apply()
    exchange.apply()
    return exchange.drop() if options.get("lost") else exchange.reply(answer)


def rate_limited(exchange: Exchange, options: Options) -> HttpResponseBase:
    """429 (documented), with `retry_after` (seconds or an HTTP date, as text) if given."""
    error = ApiError(429, "Too many requests.", code="rate_limit_exceeded", kind="requests")
    return exchange.refuse(_with_retry_after(error, options))


def quota(exchange: Exchange, options: Options) -> HttpResponseBase:
    error = ApiError(429, "The quota is used up.", code="insufficient_quota", kind="insufficient_quota")
    return exchange.refuse(_with_retry_after(error, options))


def locked(exchange: Exchange, _: Options) -> HttpResponseBase:
    """Reported: a busy conversation answers 400, not 409."""
    return exchange.refuse(invalid("conversation_locked", "conversation", "The conversation is busy."))


def rejected_key(exchange: Exchange, _: Options) -> HttpResponseBase:
    return exchange.refuse(bad_key())


def forbidden(exchange: Exchange, options: Options) -> HttpResponseBase:
    return exchange.refuse(ApiError(403, "This key may not do that.", code=options.get("code")))


def foreign(exchange: Exchange, options: Options) -> HttpResponseBase:
    """Somebody else appends `items` (one assistant message) just before the request is applied, or `where`: after."""
    batch = prepare_batch(options.get("items") or [FOREIGN_ITEM])
    if options.get("where", "before") == "before":
        store.append(exchange.conversation_id, batch)
        return exchange.reply(exchange.apply())
    answer = exchange.apply()
    store.append(exchange.conversation_id, batch)
    return exchange.reply(answer)


def rewritten(exchange: Exchange, options: Options) -> HttpResponseBase:
    """Stored with `text` (`` [altered]``) behind the first text of each item."""
    suffix = options.get("text", " [altered]")
    return exchange.reply(exchange.apply(Twist(transform=each(lambda item: altered(item, suffix)))))


def lossy(exchange: Exchange, options: Options) -> HttpResponseBase:
    """Stored without the field `field` of each item and of each of its parts."""
    return exchange.reply(exchange.apply(Twist(transform=each(lambda item: without(item, options["field"])))))


def fussy(exchange: Exchange, options: Options) -> HttpResponseBase:
    """A 400 for a batch with an item that holds `text`, and nothing stored; with `honest` it names the first one."""
    items = exchange.call.payload(known={"items"})["items"]
    refused = [index for index, item in enumerate(items) if options["text"] in codec.encode(item)]
    if not refused:
        return normal(exchange, options)
    param = f"items[{refused[0]}]" if options.get("honest") else None
    return exchange.refuse(invalid("invalid_value", param, "The content of an item is not allowed."))


def empty(exchange: Exchange, _: Options) -> HttpResponseBase:
    """A list without items that says that there are more."""
    return exchange.reply(empty_page(exchange.apply()))


def stuck_cursor(exchange: Exchange, _: Options) -> HttpResponseBase:
    """The first page, whatever the cursor, and more to come."""
    return exchange.reply(endless(exchange.apply(Twist(ignore_cursor=True))))


def stale_read(exchange: Exchange, options: Options) -> HttpResponseBase:
    """The list of some time ago: without the newest `count` (1) items."""
    return exchange.reply(exchange.apply(Twist(hide_newest=options.get("count", 1))))


KINDS: dict[str, Mischief] = {
    "lost_before": lost_before,
    "lost_after": lost_after,
    "error_before": error_before,
    "error_after": error_after,
    "hang_before": hang_before,
    "hang_after": hang_after,
    "hang_lost": hang_lost,
    "late_apply": late_apply,
    "truncated": truncated,
    "html": html,
    "html_before": html_before,
    "fewer_ids": fewer_ids,
    "twice": twice,
    "rate_limited": rate_limited,
    "quota": quota,
    "locked": locked,
    "bad_key": rejected_key,
    "forbidden": forbidden,
    "foreign": foreign,
    "latency": hang_before,
    "trickle": trickle,
    "empty_page": empty,
    "stuck_cursor": stuck_cursor,
    "read_error": error_before,
    "stale_read": stale_read,
    "rewritten": rewritten,
    "lossy": lossy,
    "fussy": fussy,
}


def _seconds(options: Options) -> float:
    return float(options.get("seconds", 1.0))


def _wait(options: Options) -> None:
    time.sleep(_seconds(options))


def _error(options: Options) -> ApiError:
    status = options.get("status") or 500
    error = server_error(status) if status >= 500 else ApiError(status, "The request was refused.")
    error.body["error"].update({name: options[name] for name in ("code", "param") if name in options})
    error.body = options.get("body") or error.body
    return _with_retry_after(error, options)


def _with_retry_after(error: ApiError, options: Options) -> ApiError:
    if options.get("retry_after") is not None:
        error.headers["Retry-After"] = str(options["retry_after"])
    return error


def _apply_late(exchange: Exchange) -> None:
    try:
        exchange.apply()
        exchange.note_late_change()
    finally:
        connections.close_all()
