"""The sandbox, and servers by others, against one table: what WIRE.md says of the real API, and stated deviations.

The sandbox has no deviations. A deviation that is no longer one fails, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from openai import OpenAI

from .cases import Api, Case
from .table import CASES


@pytest.fixture
def api(server) -> Iterator[Api]:
    with OpenAI(max_retries=0, timeout=10) as client:
        yield Api(client)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_server_does_what_the_table_says(server: str, api: Api, case: Case) -> None:
    assert case.look(api) == case.deviations.get(server, case.expected)


def test_a_deviation_differs_from_what_is_expected() -> None:
    assert [
        (case.name, name) for case in CASES for name, seen in case.deviations.items() if seen == case.expected
    ] == []
