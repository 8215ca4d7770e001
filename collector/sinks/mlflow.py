"""Scores as assessments in MLflow, on its traces; those of a session on its first trace, as MLflow's own scorers do.

The id of an assessment is ours, so that a score that comes again replaces the earlier one: `PATCH`, and `POST` where
there is none yet. MLflow has no batches: eight requests run at once. It shows errors too, so a `failed` outcome is
written as one.
"""

import base64
import re
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from collector.base.errors import Permanent, Retryable
from collector.base.http_client import HttpAnswer, HttpTarget, has
from collector.config.sinks import MlflowSinkConfig
from collector.sinks.writeback.batches import Missing
from collector.sinks.writeback.score import ScoreShape, WrittenScore
from collector.sinks.writeback.sink import WriteBack, target

SOURCE: Final = "spanwise"
_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_UPDATED = "feedback,rationale,metadata"
_WRITTEN = has("assessment")


class MlflowSink(WriteBack[MlflowSinkConfig]):
    name: ClassVar[str] = "mlflow"
    shape: ClassVar[ScoreShape] = ScoreShape(
        sessions=frozenset({"session.id", "mlflow.trace.session"}),
        hangs_on="first",
        takes_errors=True,
    )
    is_one_by_one = True
    trial = "/api/2.0/mlflow/experiments/get?experiment_id=0"
    promised = staticmethod(has("experiment"))

    @classmethod
    def target(cls, settings: MlflowSinkConfig) -> HttpTarget:
        token = "" if settings.token is None else settings.token.get_secret_value()
        password = "" if settings.password is None else settings.password.get_secret_value()
        basic = base64.b64encode(f"{settings.username or ''}:{password}".encode()).decode()
        return target(
            cls.name,
            settings,
            *("username", "password", "token"),
            secrets=(token, password, basic if password else ""),
            headers={"authorization": f"Bearer {token}"} if token else None,
            auth=(settings.username, password) if settings.username and not token else None,
        )

    async def send(self, scores: Sequence[WrittenScore]) -> None:
        (score,) = scores
        if not _TRACE_ID.fullmatch(score.subject.id):
            raise Permanent("the trace's id is not 32 hex digits")
        path = f"/api/3.0/mlflow/traces/tr-{score.subject.id}/assessments"
        one = f"{path}/a-{score.key}"
        if score.is_gone:
            answer = await self.client.ask("DELETE", one, expected={404})
            self._check(answer, score)
            return
        change = {"assessment": _said(score), "update_mask": _UPDATED}
        answer = await self.client.ask("PATCH", one, change, expected={404}, promised=_WRITTEN)
        if self._check(answer, score):
            return
        answer = await self.client.ask(
            "POST", path, {"assessment": _new(score)}, expected={404, 500}, promised=_WRITTEN
        )
        if answer.status == 500:
            if "constraint" not in answer.text.lower():
                raise Retryable(f"HTTP 500: {self.client.said(answer)}")
            answer = await self.client.ask("PATCH", one, change, expected={404}, promised=_WRITTEN)
        self._check(answer, score)

    def _check(self, answer: HttpAnswer, score: WrittenScore) -> bool:
        """Whether the assessment is there. Raises Missing: its trace is not. Raises Retryable: the path is not."""
        if answer.status != 404:
            return True
        if "Assessment with ID" in answer.text:
            return False
        if "Trace with" in answer.text:
            raise Missing(frozenset({score.subject}))
        raise self.client.misconfigured(answer)


def _said(score: WrittenScore) -> dict[str, Any]:
    feedback: dict[str, Any] = {"value": score.value}
    if score.error is not None:
        feedback = {"error": {"error_code": score.error, "error_message": "no score"}}
    metadata = dict(score.metadata)
    if score.signal.scope == "session":
        metadata["mlflow.trace.session"] = score.signal.session_id
    return {"feedback": feedback, "rationale": score.comment or "", "metadata": metadata}


def _new(score: WrittenScore) -> dict[str, Any]:
    return _said(score) | {
        "assessment_id": f"a-{score.key}",
        "assessment_name": score.name,
        "source": {
            "source_type": "LLM_JUDGE" if score.by_model else "CODE",
            "source_id": SOURCE,
        },
        "create_time": score.signal.time,
        "last_update_time": score.signal.time,
    }
