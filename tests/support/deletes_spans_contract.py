"""What a log must do whose trace records name no spans of its own."""

import pytest

from collector.base.errors import LogFull
from collector.log.port import CLOSINGS, SPANS, TRACES, Log
from tests.support.log_steps import all_of, commit_to, fill, new


class DeletesSpans:
    """A log without ranges: no trace record names spans, so they go when nobody waits for them."""

    async def test_spans_go_when_released_or_committed(self, log: Log) -> None:
        positions = await log.write([new(SPANS, b"%d" % n) for n in range(5)])

        log.release([positions[3]])
        await commit_to(log, "assembly", SPANS, positions[1].offset)

        assert await all_of(log, SPANS) == [b"1", b"2", b"4"]
        assert await log.get(positions[0]) is None

    async def test_a_group_that_was_not_named_holds_nothing(self, log: Log) -> None:
        (position,) = await log.write([new(SPANS, b"span")])
        await commit_to(log, "removed", SPANS, 0)

        await commit_to(log, "assembly", SPANS, position.offset + 1)

        assert await all_of(log, SPANS) == []

    async def test_full_spans_are_refused_until_a_commit_frees_them(self, small: Log) -> None:
        written = await fill(small, SPANS, 150_000)
        held = len(await all_of(small, SPANS))
        assert held == len(written)
        with pytest.raises(LogFull):
            await small.write([new(TRACES, b"with it"), new(SPANS, b"s" * 150_000)])
        assert await all_of(small, TRACES) == []

        await small.write([new(CLOSINGS, b"closing still fits")])
        half = written[held // 2].offset
        await commit_to(small, "assembly", SPANS, half)
        await small.write([new(SPANS, b"s" * 150_000)])

        assert len(await all_of(small, SPANS)) == held - held // 2 + 1

    async def test_release_alone_makes_room(self, small: Log) -> None:
        written = await fill(small, SPANS, 150_000)

        small.release(written)

        await small.write([new(SPANS, b"s" * 150_000)])
        assert len(await all_of(small, SPANS)) == 1
