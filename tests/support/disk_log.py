"""A disk log that a test opens, closes and opens again."""

from collections.abc import Awaitable, Callable

from collector.log.disk.disk_log import DiskLog

SMALL = 8 << 20
"""Bytes of a log that is full soon."""
Open = Callable[..., Awaitable[DiskLog]]
"""Takes `max_size` and `partitions`."""
