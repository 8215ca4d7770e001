"""Scores as feedback in LangSmith, on the root runs of its traces.

The id of a feedback is ours: a known one is changed, an unknown one made. LangSmith has no scores of OpenTelemetry
sessions: those hang on the session's newest trace. It takes at most four decimals.
"""

import uuid
from collections.abc import Sequence
from typing import Any, ClassVar

from collector.base.errors import Permanent
from collector.base.http_client import HttpAnswer, HttpTarget, has
from collector.config.sinks import LangsmithSinkConfig
from collector.sinks.writeback.batches import Missing
from collector.sinks.writeback.score import ScoreShape, WrittenScore
from collector.sinks.writeback.sink import WriteBack, target

_WRITTEN = has("id", str)


class LangsmithSink(WriteBack[LangsmithSinkConfig]):
    name: ClassVar[str] = "langsmith"
    shape: ClassVar[ScoreShape] = ScoreShape(sessions=frozenset())
    is_one_by_one = True
    trial = "/info"
    promised = staticmethod(has("version", str))

    @classmethod
    def target(cls, settings: LangsmithSinkConfig) -> HttpTarget:
        key = settings.api_key.get_secret_value()
        return target(cls.name, settings, "api_key", secrets=(key,), headers={"x-api-key": key})

    async def send(self, scores: Sequence[WrittenScore]) -> None:
        (score,) = scores
        one = f"/feedback/{score.uuid}"
        if score.is_gone:
            await self.client.ask("DELETE", one, expected={404})
            return
        said = _said(score)
        answer = await self.client.ask("PATCH", one, said, expected={404}, promised=_WRITTEN)
        if answer.status != 404:
            return
        new = said | _place(score, self.settings.project_id)
        answer = await self.client.ask(
            "POST", "/feedback", new, expected={404, 409}, promised=_WRITTEN
        )
        if answer.status == 409:
            answer = await self.client.ask("PATCH", one, said, expected={404}, promised=_WRITTEN)
        self._check(answer, score)

    def _check(self, answer: HttpAnswer, score: WrittenScore) -> None:
        if answer.status != 404:
            return
        if answer.field("detail") in (None, "Not Found"):
            raise self.client.misconfigured(answer)
        raise Missing(frozenset({score.subject}))


def _said(score: WrittenScore) -> dict[str, Any]:
    value = None if score.value is None else round(score.value, 4)
    return {"score": value, "value": score.label, "comment": score.comment}


def _place(score: WrittenScore, project: str) -> dict[str, Any]:
    try:
        run = str(uuid.UUID(score.subject.id))
    except ValueError:
        raise Permanent(f"`{score.subject.id[:64]}` is not a trace id of 32 hex digits") from None
    return {
        "id": score.uuid,
        "trace_id": run,
        "run_id": run,
        "session_id": project,
        "key": score.name,
        "feedback_source": {
            "type": "model" if score.by_model else "api",
            "metadata": score.metadata,
        },
    }
