"""The form of a request that a model takes: which parameters of ours go with it, and what was learned of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from evaluators.judging.prompt import Prompt
from evaluators.providers.faults import Parameter, ProviderFault

LEAST_TOKENS = 256  # tokens of an answer: with fewer none of ours is whole
LEAST_KEPT = 1024
"""What one long prompt leaves of a small context is kept for later answers only above it."""
FAILURES_WITH_SCHEMA = 3
"""Requests that a server failed on with a schema and answered without, before the next go without one."""
LIMITS = ("max_tokens", "max_completion_tokens")
"""The names of the limit, in the order in which they are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    schema: bool = True
    temperature: float | None
    tokens: int | None  # of an answer; None = not sent
    limit: str = LIMITS[0]  # the name under which it is sent

    def parameters(self, prompt: Prompt) -> dict[str, Any]:
        sent: dict[str, Any] = {}
        if self.temperature is not None:
            sent["temperature"] = self.temperature
        if self.tokens is not None:
            sent[self.limit] = self.tokens
        if self.schema and prompt.schema is not None:
            schema = {"name": prompt.name, "schema": prompt.schema, "strict": True}
            sent["response_format"] = {"type": "json_schema", "json_schema": schema}
        return sent

    def has(self, parameter: Parameter) -> bool:
        if parameter == "schema":
            return self.schema
        return (self.temperature if parameter == "temperature" else self.tokens) is not None

    def without(self, parameter: Parameter, *, too_much: bool = False) -> Form | None:
        """The form without a parameter, or with another name for it, or less of it; None: there is no such form."""
        if not self.has(parameter):
            return None
        if parameter == "schema":
            return replace(self, schema=False)
        if parameter == "temperature":
            return replace(self, temperature=None)
        return self._with_fewer() if too_much else self._with_other_limit()

    def _with_fewer(self) -> Form | None:
        fewer = max(LEAST_TOKENS, (self.tokens or 0) // 2)
        return replace(self, tokens=fewer) if self.tokens and fewer < self.tokens else None

    def _with_other_limit(self) -> Form:
        if self.limit == LIMITS[0]:
            return replace(self, limit=LIMITS[1])
        return replace(self, tokens=None)

    def after(self, fault: ProviderFault, *, is_last: bool) -> Form | None:
        """The form to try next after a refusal; None: no other form would help.

        `is_last`: it is the last attempt: a server's failure is taken for a refusal of the schema.
        """
        if fault.refuses is not None:
            form = self.without(fault.refuses, too_much=fault.too_much)
            if form is not None or not fault.unclear:
                return form
        if fault.unclear:
            smaller = map(self.without, _IN_TURN)
            return next((form for form in smaller if form is not None), None)
        is_suspect = fault.word == "no_answer" or (is_last and fault.may_refuse_schema)
        return self.without("schema") if is_suspect else None


_IN_TURN: tuple[Parameter, ...] = ("schema", "temperature", "max_tokens")
"""What is left out of a request that is called malformed without a reason."""


class Forms:
    """What each model takes. Only an answer teaches: a request in flight changes nothing for others."""

    def __init__(self, first: Form) -> None:
        self._first = first
        self._known: dict[str, Form] = {}
        self._takes_schema: set[str] = set()
        self._failures: dict[str, int] = {}

    def of(self, model: str) -> Form:
        return self._known.get(model, self._first)

    def answered(self, model: str, form: Form, *, asks_schema: bool, suspected: bool) -> None:
        """The model answered to this form.

        `form`: what was sent with the prompt. `asks_schema`: whether the prompt has a schema. `suspected`: the schema
        was left out because the server failed, not because it refused.
        """
        if not asks_schema:
            form = replace(form, schema=True)
        elif form.schema:
            self._takes_schema.add(model)
        if suspected:
            self._failures[model] = self._failures.get(model, 0) + 1
            if model in self._takes_schema or self._failures[model] < FAILURES_WITH_SCHEMA:
                form = replace(form, schema=True)
        known = self.of(model)
        self._known[model] = Form(
            schema=known.schema and form.schema,
            temperature=None if form.temperature is None else known.temperature,
            tokens=_fewer(known.tokens, form.tokens),
            limit=max(known.limit, form.limit, key=LIMITS.index),
        )

    def learned(self, model: str) -> list[str]:
        """What the model does not take of what is configured, in words."""
        first, known = self._first, self.of(model)
        found: list[str] = []
        if known.schema < first.schema:
            found.append("without a JSON schema")
        if known.temperature != first.temperature:
            found.append("without temperature")
        if known.tokens is None and first.tokens is not None:
            found.append("without max_tokens")
        elif known.tokens != first.tokens:
            found.append(f"with at most {known.tokens} tokens")
        elif known.limit != first.limit:
            found.append(f"with {known.limit}")
        return found


def _fewer(known: int | None, tokens: int | None) -> int | None:
    if known is None or tokens is None:
        return None
    return min(known, max(tokens, min(known, LEAST_KEPT)))
