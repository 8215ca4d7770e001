"""The port to a judge: prompt, answer, error. No network here; the service implements it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

from evaluators.digest import canonical
from evaluators.model import JSON

SKIPPED = frozenset({"budget"})
"""Types of `JudgeError` for calls withheld on purpose: the outcome is `skipped` with the type as its reason."""


class JudgeError(Exception):
    """A prompt got no answer, and trying it again now would not help.

    Args:
        type: timeout, rate_limited, provider_error, overload, ... become `failed` with this type; budget becomes
            `skipped` with this reason.
        message: For a person; never the prompt.
        retry_after: Seconds that the provider asks to wait; None = it named none.
    """

    def __init__(
        self,
        *,
        type: str,  # noqa: A002 - the signal's own word for it
        message: str,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{type}: {message}")
        self.type = type
        self.message = message
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One question to a judge."""

    name: str
    """Of the stage: a valid name of a response format ([a-zA-Z0-9_-], at most 64)."""
    system: str
    """Instructions and rubrics: equal for equal evaluators, so that providers' prompt caches hit."""
    user: str
    """The material, fenced by a random marker."""
    schema: JSON
    """Strict JSON Schema of the answer; None = free text."""
    digest: str
    """SHA-256 over all of it but the random marker: the key of an answer cache, beside the model."""

    @property
    def tokens(self) -> int:
        """An estimate, four characters a token: what a budget reserves before the call. The schema is counted."""
        schema = "" if self.schema is None else canonical(self.schema).decode()
        return -(-(len(self.system) + len(self.user) + len(schema)) // 4)


def digest_of(name: str, system: str, user: str, schema: JSON) -> str:
    """A prompt's digest, given its user text without the marker."""
    return hashlib.sha256(canonical([name, system, user, schema])).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A judge's answer and its cost."""

    text: str
    model: str
    """The model that answered; a signal names it."""
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """None: the price is not known."""
    cached: bool = False
    """Read from a cache: it cost nothing now."""


class JudgeClient(Protocol):
    """Asks a judge one question. Retries, limits, budgets and caches are the implementation's."""

    async def __call__(self, prompt: Prompt, *, model: str | None) -> Answer:
        """The answer's text as the model gave it.

        Args:
            prompt: The question.
            model: A model for this question; None = the configured one.

        Raises:
            JudgeError: There is no answer.
        """
        ...
