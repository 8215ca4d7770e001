"""Scoring traces that were read from recordings."""

import json
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from collector.config.plan import plan_from, registry_from
from collector.service.evaluation import ClosedSession, evaluate_traces
from evaluators.declare import Spec, declared
from evaluators.model import Trace
from evaluators.registry import Registry
from spanwise.recordings import RecordedTrace, Recording, Source, aread
from spanwise.scores import Scores
from spanwise.settings import Configuration, settings_of, waits

Evaluators = Sequence[str | Callable[..., Any]]
"""Names of evaluators, and functions marked with `@spanwise.evaluator`."""
Expected = str | Path | Sequence[Mapping[str, Any]]
"""A file of expected answers and tools, or its entries."""


async def ascore(
    traces: Iterable[Trace],
    *,
    evaluators: Evaluators | None = None,
    judge: str | Mapping[str, Any] | None = None,
    expectations: Expected | None = None,
    plugins: Sequence[str | Path] = (),
    config: Configuration = None,
) -> Scores:
    """The final signals of these traces and of their sessions, which end with them.

    Args:
        traces: Of `read`; a part of a recording's will do.
        evaluators: These alone; default: every evaluator whose needs are met. A function runs in this process.
        judge: A litellm model name, or the section `judge` of the configuration. Without one no model is asked.
        expectations: Expected answers and tools.
        plugins: Python files or modules with evaluators of your own. They run in processes of their own.
        config: A YAML file, or settings as nested mappings.

    Raises:
        ConfigError: a setting is wrong.
        EvaluatorError: an evaluator is unknown, is declared twice, or lacks what it needs.
        TypeError: a trace does not come from `read`, or a function is not an evaluator.
    """
    recordings, trace_ids = _recordings(traces)
    signals: list[dict[str, Any]] = []

    def closed(session: ClosedSession) -> None:
        signals.extend(map(msgspec.json.decode, session.signals))

    with _expectations_file(expectations) as expected:
        settings = settings_of(config, judge=judge, expectations=expected, plugins=plugins)
        functions = [each for each in evaluators or () if not isinstance(each, str)]
        # Beside functions of this program, all others run here too.
        registry = (
            Registry.discover(plugins=settings.plugins) if functions else registry_from(settings)
        )
        for spec in map(_spec, functions):
            registry.add(spec)
        only = None if evaluators is None else list(map(_name, evaluators))
        await evaluate_traces(
            settings,
            plan_from(settings, registry=registry, only=only),
            [piece for each in recordings for piece in each.spans],
            trace_ids,
            closed,
            scores=[score for each in recordings for score in each.scores],
            inline=bool(functions),
        )
    return Scores(signals)


async def aevaluate(source: Source, **options: Any) -> Scores:
    """`read` and `score` in one: `options` are those of `score`."""
    return await ascore(await aread(source, config=options.get("config")), **options)


score, evaluate = waits(ascore), waits(aevaluate)


def _recordings(traces: Iterable[Trace]) -> tuple[Collection[Recording], Collection[str]]:
    """The recordings that these traces came from, each once; and the traces' ids."""
    recordings: dict[int, Recording] = {}
    trace_ids: set[str] = set()
    for trace in traces:
        if not isinstance(trace, RecordedTrace):
            raise TypeError("expected traces of `spanwise.read`, which know the spans they are of")
        recordings[id(trace.recording)] = trace.recording
        trace_ids.add(trace.trace_id)
    return recordings.values(), trace_ids


def _spec(function: Callable[..., Any]) -> Spec:
    """The declaration of a function, held to what third parties' evaluators are held to."""
    spec = declared(function)
    if spec is None:
        name = getattr(function, "__name__", repr(function))
        raise TypeError(f"`{name}` is not an evaluator: mark it with @spanwise.evaluator")
    return replace(spec, method="custom", source=spec.source or "this program")


def _name(chosen: str | Callable[..., Any]) -> str:
    return chosen if isinstance(chosen, str) else _spec(chosen).name


@contextmanager
def _expectations_file(expectations: Expected | None) -> Generator[Path | None]:
    """Where the entries are; what a program gives is written for the workers, which read the configuration."""
    if expectations is None or isinstance(expectations, str | Path):
        yield None if expectations is None else Path(expectations)
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "expectations.jsonl"
        file.write_text("".join(f"{json.dumps(dict(each))}\n" for each in expectations))
        yield file
