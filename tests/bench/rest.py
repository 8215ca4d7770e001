"""What a service takes while nothing is sent to it."""

import time
from dataclasses import dataclass
from typing import Any

from tests.bench.measure import served, status, usage
from tests.support.service import children

STARTED = 6.0
"""Seconds until what a start leaves behind is done."""
SECONDS = 20.0
"""Of the look: CPU is counted in hundredths of a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """A service with every default, which has not been sent anything."""

    cpu: float
    """Of all its processes, in percent of one core."""
    resident: float
    """VmRSS of all its processes, in MiB: pages that they share count for each."""
    wakeups: float
    """Of its event loop's thread, a second."""


def at_rest(seconds: float = SECONDS, **how: Any) -> Rest:
    """Look at a service for so long; `how`: see `Service`."""
    with served(**how) as it:
        time.sleep(STARTED)
        before, woke = usage(it.pid), status(it.pid, "voluntary_ctxt_switches")
        began = time.monotonic()
        time.sleep(seconds)
        used, passed = usage(it.pid).since(before), time.monotonic() - began
        return Rest(
            cpu=100 * used.cpu / passed,
            resident=sum(status(each, "VmRSS") for each in (it.pid, *children(it.pid))) / 1024,
            wakeups=(status(it.pid, "voluntary_ctxt_switches") - woke) / passed,
        )
