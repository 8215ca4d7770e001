"""Fakes: embedders whose vectors and judges whose answers a test decides."""

import json
from collections.abc import Callable, Mapping, Sequence

from evaluators.judging.prompt import Answer, Prompt
from evaluators.matching.json_values import object_of
from evaluators.model import JSON


class ScriptedEmbedder:
    """Returns scripted vectors by text, and remembers the texts it was asked for.

    Raises KeyError: it was asked for a text without a scripted vector.
    """

    def __init__(self, vectors: Mapping[str, Sequence[float]], *, model: str = "scripted") -> None:
        self.model = model
        self.asked: list[tuple[str, ...]] = []
        self._vectors = vectors

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.asked.append(tuple(texts))
        return [self._vectors[text] for text in texts]


class ScriptedJudge:
    """A `JudgeClient` that answers as a script decides, and remembers its prompts.

    `script`: from a prompt to the answer's text; an exception it returns is raised.
    """

    def __init__(
        self, script: Callable[[Prompt], str | Exception], *, cost_usd: float | None = 0.001
    ) -> None:
        self.asked: list[tuple[Prompt, str | None]] = []
        self._script = script
        self._cost_usd = cost_usd

    async def __call__(self, prompt: Prompt, *, model: str | None) -> Answer:
        """The scripted answer; tokens are estimated at four characters each."""
        self.asked.append((prompt, model))
        answer = self._script(prompt)
        if isinstance(answer, Exception):
            raise answer
        return Answer(
            text=answer,
            model=model or "scripted",
            input_tokens=prompt.tokens,
            output_tokens=-(-len(answer) // 4),
            cost_usd=self._cost_usd,
        )


def fitting(schema: JSON, number: float = 0.5, text: str = "because") -> JSON:
    """A value that a strict schema allows: this number, clamped, and this text wherever it asks for one."""
    known = object_of(schema) or {}
    if "anyOf" in known:
        return fitting(known["anyOf"][0], number, text)
    if "enum" in known:
        return known["enum"][0]
    kind = known.get("type")
    if kind == "object":
        return {key: fitting(each, number, text) for key, each in known["properties"].items()}
    if kind == "array":
        count = int(known.get("minItems", 1))
        return [fitting(known["items"], number, text) for _ in range(count)]
    low, high = known.get("minimum", number), known.get("maximum", number)
    clamped = min(max(number, low), high)
    return {"number": clamped, "integer": round(clamped), "boolean": True, "null": None}.get(
        str(kind), text
    )


def fitting_answer(prompt: Prompt) -> str:
    """A script that answers every question with 0.5 and plain text."""
    return json.dumps(fitting(prompt.schema))
