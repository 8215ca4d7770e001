"""Scores as annotations in Phoenix: on its traces, and on sessions that it reads from `session.id`.

An annotation is one per (name, trace or session, identifier), and the identifier is constant: a score that comes again
replaces the earlier one. With `sync=true` the answer comes once they are stored. One that is taken back becomes an
annotation without a score, because Phoenix deletes by project and time only.
"""

from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Final
from urllib.parse import quote

from collector.base.errors import Permanent
from collector.base.http_client import HttpAnswer, HttpTarget, has
from collector.config.sinks import PhoenixSinkConfig
from collector.sinks.writeback.batches import Missing, Written, write_in_batches
from collector.sinks.writeback.score import ScoreShape, WrittenScore, WrittenSubject
from collector.sinks.writeback.sink import WriteBack, target

IDENTIFIER: Final = "spanwise"
NOT_SCORED: Final = "not_scored"
_NOT_THERE = " do not exist"


class PhoenixSink(WriteBack[PhoenixSinkConfig]):
    name: ClassVar[str] = "phoenix"
    shape: ClassVar[ScoreShape] = ScoreShape(sessions=frozenset({"session.id"}))
    promised = staticmethod(has("data"))

    @classmethod
    def target(cls, settings: PhoenixSinkConfig) -> HttpTarget:
        key = "" if settings.api_key is None else settings.api_key.get_secret_value()
        return target(
            cls.name,
            settings,
            "api_key",
            secrets=(key,),
            places=("endpoint", "project"),
            headers={"authorization": f"Bearer {key}"} if key else None,
        )

    @classmethod
    def trial_of(cls, settings: PhoenixSinkConfig) -> str:
        return f"/v1/projects/{quote(settings.project, safe='')}"

    async def write(self, scores: Sequence[WrittenScore], written: Written) -> None:
        for kind in ("trace", "session"):
            some = [each for each in scores if each.subject.kind == kind]
            await write_in_batches(some, self.send, written)

    async def send(self, scores: Sequence[WrittenScore]) -> None:
        kind = scores[0].subject.kind
        data = [_annotation(each) for each in scores]
        answer = await self.client.ask(
            "POST",
            f"/v1/{kind}_annotations?sync=true",
            {"data": data},
            expected={404},
            promised=has("data", list),
        )
        if answer.status == 404:
            raise self._not_there(answer, scores)

    def _not_there(self, answer: HttpAnswer, scores: Sequence[WrittenScore]) -> Exception:
        """The error of a 404: subjects that Phoenix does not have, or a path that is not Phoenix's."""
        if _NOT_THERE not in answer.text:
            return self.client.misconfigured(answer)
        subjects = frozenset(each.subject for each in scores)
        if len(subjects) == 1:
            return Missing(subjects)
        if named := _named_in(answer.text, subjects):
            return Missing(named)
        # The request is halved: of one id it is clear.
        return Permanent("Phoenix names none of the ids that it does not have")


def _annotation(score: WrittenScore) -> dict[str, Any]:
    result: dict[str, Any] = {"score": score.value, "label": score.label or NOT_SCORED}
    if score.value is not None:
        result = {"score": score.value, "label": score.label, "explanation": score.comment}
    return {
        f"{score.subject.kind}_id": score.subject.id,
        "name": score.name,
        "annotator_kind": "LLM" if score.by_model else "CODE",
        "result": result,
        "metadata": score.metadata,
        "identifier": IDENTIFIER,
    }


def _named_in(text: str, subjects: Collection[WrittenSubject]) -> frozenset[WrittenSubject]:
    listed = text.rpartition(_NOT_THERE)[0].partition(" with IDs ")[2]
    return frozenset(each for each in subjects if f", {each.id}, " in f", {listed}, ")
