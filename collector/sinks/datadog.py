"""Scores as evaluations in Datadog LLM Observability, joined to the root span of a trace.

Datadog documents no key of an evaluation, so that a second one of a trace would be beside the first: a score is sent
once, when it is first final, and is neither replaced nor taken away. Sessions cannot be scored.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from collector.base.errors import Permanent
from collector.base.http_client import HttpAnswer, HttpTarget, has, is_json_or_nothing
from collector.config.sinks import DatadogSinkConfig
from collector.records.signal import unix_seconds
from collector.sinks.writeback.score import ScoreShape, WrittenScore
from collector.sinks.writeback.sink import WriteBack, target


class DatadogSink(WriteBack[DatadogSinkConfig]):
    name: ClassVar[str] = "datadog"
    shape: ClassVar[ScoreShape] = ScoreShape(
        sessions=frozenset(), takes_sessions=False, replaces=False, tool=("datadog", "ddtrace")
    )
    trial = "/api/v1/validate"
    promised = staticmethod(has("valid", bool))

    @classmethod
    def target(cls, settings: DatadogSinkConfig) -> HttpTarget:
        key = settings.api_key.get_secret_value()
        headers = {"dd-api-key": key}
        return target(
            cls.name, settings, "api_key", "site", secrets=(key,), places=("site",), headers=headers
        )

    async def send(self, scores: Sequence[WrittenScore]) -> None:
        metrics = [self._metric(each) for each in scores]
        attributes = {"metrics": metrics}
        body = {"data": {"type": "evaluation_metric", "attributes": attributes}}
        await self.client.ask(
            "POST", "/api/intake/llm-obs/v2/eval-metric", body, promised=_is_accepted
        )

    def _metric(self, score: WrittenScore) -> Mapping[str, Any]:
        try:
            trace, span = int(score.subject.id, 16), int(score.signal.span_id or "", 16)
        except ValueError:
            raise Permanent("the trace has no root span to join the score to") from None
        found: dict[str, Any] = {
            "join_on": {"span": {"span_id": str(span), "trace_id": str(trace)}},
            "ml_app": self.settings.ml_app or score.signal.service,
            "timestamp_ms": round(unix_seconds(score.signal.time) * 1000),
            "metric_type": "score",
            "label": label_of(score.name),
            "score_value": score.value,
            "eval_scope": "trace",
            "tags": [
                "source:otel",
                *(f"{k.replace('.', '_')}:{v}" for k, v in score.metadata.items()),
            ],
        }
        if score.label is not None:
            found["assessment"] = score.label
        if score.comment is not None:
            found["reasoning"] = score.comment
        return found


def _is_accepted(answer: HttpAnswer) -> bool:
    return answer.status == 202 and is_json_or_nothing(answer)


def label_of(name: str) -> str:
    """An evaluator's name as Datadog takes it: a letter first, then letters, digits and underscores, at most 200."""
    label = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return (label if label[:1].isalpha() else f"e_{label}")[:200]
