"""How many of the newest uses of a tool, or of model calls, failed since any moment. Pure.

An exponential histogram: buckets of 1, 2, 4, ... uses, SAME of each size. A count is exact for the newest uses, and to
a twelfth for older ones.

Source: Datar, Gionis, Indyk, Motwani, Maintaining stream statistics over sliding windows, SODA 2002.
"""

from collections.abc import Iterable

Bucket = tuple[int, int, int]
"""(log time of its first use in whole seconds, uses, failures)."""

SAME = 6  # buckets of one size; of more the two oldest are joined
LARGEST = 256  # uses of the largest bucket: of that size the oldest is forgotten


class RecentUses:
    """Uses by when they were seen."""

    def __init__(self, buckets: Iterable[Bucket] = ()) -> None:
        self.buckets: list[Bucket] = list(buckets)  # oldest first

    def add(self, seen: float, *, failed: bool) -> None:
        buckets = self.buckets
        buckets.append((int(seen), 1, int(failed)))
        at, size = len(buckets) - 1 - SAME, 1  # the oldest of this size, if there are too many
        while at >= 0 and buckets[at][1] == size:
            if size == LARGEST:
                del buckets[at]
                return
            since, uses, failures = buckets[at]
            _, more, failed_more = buckets.pop(at + 1)
            buckets[at] = (since, uses + more, failures + failed_more)
            at, size = at - SAME, 2 * size

    def since(self, time: float) -> tuple[int, int]:
        found = [each for each in self.buckets if each[0] >= int(time)]
        return sum(uses for _, uses, _ in found), sum(failures for _, _, failures in found)
