"""What keeps evaluators from scoring: content that a recording lacks, and the configuration. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from collector.config.tree import Config
from collector.doctor.examined_trace import ExaminedTrace
from evaluators.declare import Spec
from evaluators.dialects.advice import Lack
from evaluators.model import Content

_LACKS: Mapping[Content, frozenset[Lack]] = {
    "text": frozenset({"no_content", "content_in_logs", "truncated", "dropped_attributes"}),
    "tool_calls": frozenset({"no_tool_arguments", "content_in_logs", "dropped_attributes"}),
    "tool_definitions": frozenset({"no_tool_definitions"}),
    "root": frozenset({"no_root"}),
    "session": frozenset({"no_session", "scrubbed"}),
    "tokens": frozenset({"no_tokens"}),
}
"""Why a recording may not carry a kind of content."""


def weakened_by(lack: Lack, specs: Iterable[Spec]) -> frozenset[str]:
    """Names of the evaluators that declare to read content which this lack takes away."""
    return frozenset(
        spec.name for spec in specs if any(lack in _LACKS[content] for content in spec.reads)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """An evaluator that does not run at all with this configuration, and what would make it."""

    evaluator: str
    method: str
    why: str
    """no_judge, no_expectations, no_embedder, no_task or off."""
    setting: str


def stops(specs: Iterable[Spec], config: Config) -> tuple[Stop, ...]:
    """Every evaluator that this configuration keeps from running."""
    found = [_stop(spec, config) for spec in specs]
    return tuple(stop for stop in found if stop is not None)


def _stop(spec: Spec, config: Config) -> Stop | None:
    chosen = config.evaluators.get(spec.name)
    if chosen is not None and not chosen.enabled:
        return _because(spec, "off", f"evaluators.{spec.name}.enabled: true")
    if (
        "judge" in spec.needs
        and config.judge.model is None
        and (chosen is None or "model" not in chosen.options)
    ):
        return _because(
            spec, "no_judge", "judge.model: <a litellm model name> (SPANWISE_JUDGE__MODEL)"
        )
    if "expectations" in spec.needs and config.expectations is None:
        return _because(spec, "no_expectations", "expectations: <file> (SPANWISE_EXPECTATIONS)")
    if "embedder" in spec.needs and config.embedder.kind == "none":
        return _because(spec, "no_embedder", "embedder.kind: wordllama (SPANWISE_EMBEDDER__KIND)")
    if not spec.on and chosen is None:
        return _because(spec, "off", f"evaluators.{spec.name}.enabled: true")
    return None


def _because(spec: Spec, why: str, setting: str) -> Stop:
    return Stop(evaluator=spec.name, method=spec.method, why=why, setting=setting)


def without_tasks(traces: Iterable[ExaminedTrace]) -> tuple[Stop, ...]:
    """pass@k and pass^k need task runs: sessions whose spans name their task."""
    turns = [each for each in traces if each.is_turn]
    if not turns or any(each.has_task for each in turns):
        return ()
    setting = 'span.set_attribute("spanwise.task.id", "...") on any span of a task run'
    return (Stop(evaluator="task pass@k", method="formula", why="no_task", setting=setting),)
