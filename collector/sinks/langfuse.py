"""Scores in Langfuse, on its traces and sessions.

Rows are kept by day of the timestamp, name and id: both the id and the timestamp are the same in every revision. Newer
servers take a list at `/api/public/scores`; older ones take events at `/api/public/ingestion`, which is tried once the
list is refused. Langfuse takes a score before its trace and joins them when it comes.
"""

import base64
from collections.abc import Sequence
from typing import Any, ClassVar

from collector.base.errors import Permanent
from collector.base.http_client import HttpTarget, has
from collector.config.sinks import LangfuseSinkConfig
from collector.sinks.writeback.batches import Written, write_in_batches
from collector.sinks.writeback.score import ScoreShape, WrittenScore
from collector.sinks.writeback.sink import WriteBack, target


class LangfuseSink(WriteBack[LangfuseSinkConfig]):
    name: ClassVar[str] = "langfuse"
    shape: ClassVar[ScoreShape] = ScoreShape(
        sessions=frozenset({"session.id", "langfuse.session.id"})
    )
    trial = "/api/public/projects"
    promised = staticmethod(has("data", list))
    _takes_lists: bool | None = None  # None: not known yet

    @classmethod
    def target(cls, settings: LangfuseSinkConfig) -> HttpTarget:
        secret = settings.secret_key.get_secret_value()
        basic = base64.b64encode(f"{settings.public_key}:{secret}".encode()).decode()
        keys, auth = ("public_key", "secret_key"), (settings.public_key, secret)
        return target(cls.name, settings, *keys, secrets=(secret, basic), auth=auth)

    async def write(self, scores: Sequence[WrittenScore], written: Written) -> None:
        await write_in_batches([s for s in scores if not s.is_gone], self.send, written)
        await write_in_batches([s for s in scores if s.is_gone], self._take_away, written)

    async def send(self, scores: Sequence[WrittenScore]) -> None:
        if self._takes_lists is not False:
            try:
                await self._send_list(scores)
            except Permanent:
                if self._takes_lists:
                    raise
            else:
                self._takes_lists = True
                return
        await self._send_events(scores)
        self._takes_lists = False

    async def _send_list(self, scores: Sequence[WrittenScore]) -> None:
        body = [self._body(each) for each in scores]
        answer = await self.client.ask(
            "POST", "/api/public/scores", body, promised=has("accepted", int)
        )
        if answer.field("rejected"):
            # Which ones is not said. They are sent again in halves, to the same places.
            raise _Partial(f"HTTP {answer.status}: {self.client.said(answer)}")

    async def _send_events(self, scores: Sequence[WrittenScore]) -> None:
        batch = [
            {
                "id": f"{each.key}-{each.signal.revision}",
                "type": "score-create",
                "timestamp": each.signal.time,
                "body": self._body(each),
            }
            for each in scores
        ]
        answer = await self.client.ask(
            "POST", "/api/public/ingestion", {"batch": batch}, promised=has("successes", list)
        )
        if answer.field("errors"):
            raise Permanent(f"HTTP {answer.status}: {self.client.said(answer)}")

    async def _take_away(self, scores: Sequence[WrittenScore]) -> None:
        for each in scores:
            await self.client.ask("DELETE", f"/api/public/scores/{each.key}", expected={404})

    def _body(self, score: WrittenScore) -> dict[str, Any]:
        body: dict[str, Any] = {
            "id": score.key,
            f"{score.subject.kind}Id": score.subject.id,
            "name": score.name,
            "value": score.value,
            "dataType": "NUMERIC",
            "metadata": {
                **score.metadata,
                **({"spanwise.label": score.label} if score.label else {}),
            },
            "environment": self.settings.environment,
            "timestamp": score.signal.started or score.signal.time,
        }
        if score.comment is not None:
            body["comment"] = score.comment
        return body


class _Partial(Permanent):
    """A list of which only some were taken: the server knows lists."""
