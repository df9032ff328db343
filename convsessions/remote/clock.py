"""The clock of deadlines within one process.

It must go on while the process is stopped or the machine sleeps: a request that was prepared before a long pause must
not be sent after it, because another worker has taken over by then. CLOCK_MONOTONIC stands still during a suspend;
CLOCK_BOOTTIME (Linux) does not.
"""

from __future__ import annotations

import time

if hasattr(time, "CLOCK_BOOTTIME"):

    def now() -> float:
        """Seconds since some fixed point, never going back."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

else:  # pragma: no cover - only Linux has it

    def now() -> float:
        """Seconds since some fixed point, never going back."""
        return time.monotonic()
