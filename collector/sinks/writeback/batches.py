"""Scores in requests of bounded size; a request that is refused is halved until the bad score is alone."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from collector.base.errors import Permanent, Retryable
from collector.log.port import Position
from collector.sinks.port import pieces
from collector.sinks.writeback.score import WrittenScore, WrittenSubject

MOST = 500  # scores of a request
LARGEST = 1_000_000  # bytes of a request
CONNECTIONS = 8  # requests at once, where each holds one score
_OVERHEAD = 1200
"""Bytes that a score takes in any tool's request besides its comment and its metadata."""


class Missing(Exception):
    """The tool does not know these subjects, and took nothing of the request."""

    def __init__(self, subjects: frozenset[WrittenSubject]) -> None:
        super().__init__(f"{len(subjects)} subjects are not there")
        self.subjects = subjects


@dataclass(slots=True)
class Written:
    refused: dict[Position, str] = field(default_factory=dict[Position, str])
    missing: set[WrittenSubject] = field(default_factory=set[WrittenSubject])
    """Not there yet: none of their scores was written."""

    def is_written(self, score: WrittenScore) -> bool:
        return score.subject not in self.missing and score.position not in self.refused


async def write_in_batches(
    scores: Sequence[WrittenScore],
    send: Callable[[Sequence[WrittenScore]], Awaitable[None]],
    written: Written,
) -> None:
    """Send all; `send` raises `Missing` for subjects to leave out, `Permanent` for what is to be halved."""
    for piece in pieces(scores, size_of, largest=LARGEST, most=MOST):
        await _write(piece, send, written)


async def write_one_by_one(
    scores: Sequence[WrittenScore],
    send: Callable[[Sequence[WrittenScore]], Awaitable[None]],
    written: Written,
) -> None:
    """As `write_in_batches`, for a tool that takes one score a request: several requests run at once.

    After a failure no request begins, and those under way end: one that is cancelled would leave its connection open.
    """
    places = asyncio.Semaphore(CONNECTIONS)
    errors: list[Retryable] = []

    async def one(score: WrittenScore) -> None:
        async with places:
            if not errors:
                try:
                    await write_in_batches([score], send, written)
                except Retryable as error:
                    errors.append(error)

    async with asyncio.TaskGroup() as tasks:
        for each in scores:
            tasks.create_task(one(each))
    if errors:
        raise errors[0]


async def _write(
    scores: Sequence[WrittenScore],
    send: Callable[[Sequence[WrittenScore]], Awaitable[None]],
    written: Written,
) -> None:
    scores = [each for each in scores if each.subject not in written.missing]
    if not scores:
        return
    try:
        await send(scores)
    except Missing as missing:
        written.missing |= missing.subjects
        await _write(scores, send, written)
    except Permanent as error:
        if len(scores) == 1:
            written.refused[scores[0].position] = str(error)
            return
        middle = len(scores) // 2
        await _write(scores[:middle], send, written)
        await _write(scores[middle:], send, written)


def size_of(score: WrittenScore) -> int:
    texts = sum(len(key) + len(value) for key, value in score.metadata.items())
    return _OVERHEAD + texts + 6 * len(score.comment or "")
