"""How many files, and so connections, this process may have open."""

from __future__ import annotations

import resource

ENOUGH = 16_384
"""Files that a process may ask for: more connections than one core can serve."""


def connections(most: int, *, share: float) -> int:
    """How many connections a listener takes: `most`, but no more than `share` of the files that may be open.

    Raises the process's own limit as far as the system lets it, up to `ENOUGH`: it is often 1,024, and once it is used
    up no listener accepts anything, health included.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(ENOUGH, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return most if soft == resource.RLIM_INFINITY else min(most, int(soft * share))
