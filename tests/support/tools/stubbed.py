"""The other side of a sink's conformance suite where the tool cannot run here: a stub."""

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from collector.records.signal import Signal
from collector.sinks.port import Sink
from tests.support.loopback import Reply, Request, Stub
from tests.support.signals import encode, signal
from tests.support.tools.scores import published_signals


class StubbedTool:
    """Keeps what it took; `broken`: it is away."""

    bad: ClassVar[str] = "the tool chokes on this"

    def __init__(self, stub: Stub) -> None:
        self.stub = stub
        self.broken = False
        self.taken: list[dict[str, Any]] = []
        stub.answer = self.answer

    def sink(self) -> Sink:
        """See `FarEnd`; a test that does not run the suite closes it before anything that may skip."""
        raise NotImplementedError

    def take(self, asked: Request) -> Reply:
        """What the tool does with a request."""
        raise NotImplementedError

    def id_of(self, taken: dict[str, Any]) -> str:
        """The id of the signal in what was taken."""
        raise NotImplementedError

    def answer(self, asked: Request) -> Reply:
        """See `Stub`."""
        if self.broken:
            return Reply(503, "away")
        return Reply(400, "no") if self.bad.encode() in asked.raw else self.take(asked)

    async def deliver(self, *batches: Signal | Sequence[Signal]) -> None:
        """A sink takes each batch, and is closed."""
        sink = self.sink()
        for each in batches:
            batch = [each] if isinstance(each, Signal) else each
            await sink.deliver(published_signals(*batch))
        await sink.close(5.0)

    async def received(self) -> list[str]:
        """See `FarEnd`."""
        return [self.id_of(each) for each in self.taken]

    async def break_off(self) -> None:
        """See `FarEnd`."""
        self.broken = True

    async def mend(self) -> None:
        """See `FarEnd`."""
        self.broken = False

    def poison(self) -> bytes:
        """See `FarEnd`."""
        return encode(signal(trace="t-1", explanation=self.bad))


def said(status: int, body: Any) -> Reply:
    """A reply in JSON."""
    return Reply(status, json.dumps(body))
