"""The documented endpoints: method to operation, key check, latency, fault, reply."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.db import transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from . import endpoints, faults, mischief
from .endpoints import Call
from .errors import ApiError, bad_key, server_error, unknown_url, wrong_method
from .exchange import Exchange, Operation
from .latency import current_latency
from .replies import error_reply

logger = logging.getLogger("convsessions.sandbox")

View = Callable[..., HttpResponseBase]


def _endpoint(**operations: Operation) -> View:
    """A view of one address. It has no transaction around it, also where the host has ATOMIC_REQUESTS."""

    @csrf_exempt
    @transaction.non_atomic_requests
    def view(request: HttpRequest, conversation_id: str = "", item_id: str = "") -> HttpResponseBase:
        operation = operations.get(request.method or "")
        if operation is None:
            return error_reply(wrong_method())
        # Not `request.body`: Django refuses to hold more than DATA_UPLOAD_MAX_MEMORY_SIZE (2.5 MB) of it.
        call = Call(conversation_id, item_id, request.GET, request.read())
        return _serve(Exchange(request, operation, call), request)

    return view


def _serve(exchange: Exchange, request: HttpRequest) -> HttpResponseBase:
    try:
        return _misbehave(exchange, request)
    except ApiError as error:
        return exchange.refuse(error)
    except Exception:
        logger.exception("the sandbox failed on %s", exchange.row)
        return exchange.refuse(server_error())
    finally:
        exchange.close()


def _misbehave(exchange: Exchange, request: HttpRequest) -> HttpResponseBase:
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise bad_key()
    if latency := current_latency(request):
        time.sleep(latency)
    fault = faults.claim(exchange.row.operation, exchange.call.conversation_id)
    if fault is None:
        return mischief.normal(exchange, {})
    exchange.note_fault(fault.kind)
    return mischief.KINDS[fault.kind](exchange, fault.as_json())


conversations = _endpoint(POST=endpoints.create_conversation)
conversation = _endpoint(
    GET=endpoints.retrieve_conversation,
    POST=endpoints.update_conversation,
    DELETE=endpoints.delete_conversation,
)
items = _endpoint(GET=endpoints.list_items, POST=endpoints.append_items)
item = _endpoint(GET=endpoints.retrieve_item, DELETE=endpoints.delete_item)


@csrf_exempt
def nowhere(request: HttpRequest) -> HttpResponseBase:
    """Any other address: the API's JSON, not the host's page, so that clients see what they would see."""
    return error_reply(unknown_url())
