"""An HTTP server on loopback that keeps what it is asked and answers as a test says."""

import contextlib
from collections.abc import AsyncGenerator, Callable

from tests.support.certificates import Pair
from tests.support.loopback import LoopbackServer, Reply, Request

TAKEN = {
    "slack": Reply(200, "ok"),
    "teams": Reply(202, ""),
    "pagerduty": Reply(202, '{"status": "success", "message": "Event processed"}'),
    "alertmanager": Reply(200, ""),
    "webhook": Reply(204, ""),
}
"""What each kind of target of notices answers to one that it takes."""


class Stub(LoopbackServer):
    """What was asked, and what is answered: `replies` in turn, then what `answer` says."""

    def __init__(self, tls: Pair | None = None) -> None:
        super().__init__(tls=tls)
        self.requests: list[Request] = []
        self.replies: list[Reply] = []
        self.answer: Callable[[Request], Reply] = lambda _asked: Reply()

    def handle(self, asked: Request) -> Reply:
        self.requests.append(asked)
        return self.replies.pop(0) if self.replies else self.answer(asked)


@contextlib.asynccontextmanager
async def stub() -> AsyncGenerator[Stub]:
    """The server, for the time of the block."""
    with Stub() as made:
        yield made
