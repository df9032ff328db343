"""Links to the API's own resources, within the very inclusion under which the request came in."""

from __future__ import annotations

import uuid

from django.urls import reverse
from rest_framework.request import Request

OWN = frozenset({"session_id", "write_id"})


def link(request: Request, name: str, **ids: uuid.UUID) -> str:
    """The absolute URL of the pattern `name`, in the namespace and with the path arguments of the host's own prefix."""
    match = request.resolver_match
    if match is None:  # pragma: no cover - a view called without URL resolution
        raise RuntimeError("a link can only be made for a request that came in by a URL")
    # What the host's include() gives as extra arguments comes by itself, and reverse() does not take it.
    given = OWN.union(match.extra_kwargs)  # type: ignore[attr-defined]
    of_host = {key: value for key, value in match.kwargs.items() if key not in given}
    path = reverse(f"{match.namespace}:{name}", kwargs={**of_host, **ids})
    return request.build_absolute_uri(path)
