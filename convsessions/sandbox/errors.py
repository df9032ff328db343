"""The refusals of the API. Statuses, codes and params are recorded or reported (WIRE.md); the wording is our own."""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """The API says no. Raised anywhere below a view, and answered as its JSON.

    `status`: HTTP status. `code` and `param` are None where the API sends null.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        kind: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Any] = {"error": {"message": message, "type": kind, "param": param, "code": code}}
        self.headers: dict[str, str] = {}


def invalid(code: str, param: str | None, message: str) -> ApiError:
    """A 400, which stores nothing of its batch (recorded)."""
    return ApiError(400, message, code=code, param=param)


def no_conversation() -> ApiError:
    """Unknown or deleted conversation: 404 with null param and code (reported)."""
    return ApiError(404, "There is no conversation with this id.")


def no_item(param: str | None = None) -> ApiError:
    """Unknown item (reported), or with `param` a deleted cursor (recorded: ``after``)."""
    return ApiError(404, "There is no item with this id in the conversation.", param=param)


def bad_key() -> ApiError:
    return ApiError(401, "The API key is not valid.", code="invalid_api_key")


def server_error(status: int = 500) -> ApiError:
    return ApiError(status, "The server had an error.", code="server_error", kind="server_error")


def unknown_url() -> ApiError:
    return ApiError(404, "There is nothing at this address.", code="unknown_url")


def wrong_method() -> ApiError:
    return ApiError(405, "This address does not take that method.", code="method_not_supported")
