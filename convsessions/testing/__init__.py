"""Tests for others to use: what the Agents SDK's `Session` protocol means, as checks that any implementation can run.

    from convsessions.testing import CHECKS, Backend, run_check

    class Mine(Backend):
        def open(self, name):
            return MySession(name)

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
    def test_conformance(check):
        asyncio.run(run_check(check, Mine()))

Needs no Django.
"""

from .backend import Backend, Check, NotApplicable, run_check
from .checks import CHECKS

__all__ = ["CHECKS", "Backend", "Check", "NotApplicable", "run_check"]
