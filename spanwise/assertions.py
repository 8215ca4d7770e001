"""An assertion for tests: every session, or trace, scores at least so much."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from collector.base.errors import ConfigError
from evaluators.model import Trace
from spanwise.recordings import read
from spanwise.scores import Scores
from spanwise.scoring import Expected, score
from spanwise.settings import Configuration

MOST = 10
"""Lines of one evaluator in the message; the number of the others is said."""


def assert_scores(
    traces: Iterable[Trace] | Scores | str | Path | bytes,
    *,
    judge: str | Mapping[str, Any] | None = None,
    expectations: Expected | None = None,
    plugins: Sequence[str | Path] = (),
    config: Configuration = None,
    **least: float,
) -> None:
    """Assert that each score of these evaluators is at least so much: `assert_scores(traces, agent_reliability=0.8)`.

    What could not be measured passes only beside something that was: an evaluator without any score fails, and so does
    one that ended in an error.

    Raises:
        AssertionError: it names each session or trace that falls short, and why.
        ValueError: no evaluator is named.
        ConfigError: one is named that there is not, a recording cannot be read, or a setting is wrong.
    """
    __tracebackhide__ = True  # pytest shows the test that failed, not the source of this function
    if not least:
        raise ValueError("name an evaluator and its least score: agent_reliability=0.8")
    try:
        if isinstance(traces, str | Path | bytes):
            traces = read(traces, config=config)
        if isinstance(traces, Scores):
            scores = traces
        else:
            scores = score(
                traces,
                evaluators=tuple(least),
                judge=judge,
                expectations=expectations,
                plugins=plugins,
                config=config,
            )
    except ConfigError as error:
        raise ConfigError(str(error)) from None  # of what it went through, no source either
    lines = [line for name, limit in least.items() for line in _short(name, limit, scores.of(name))]
    if lines:
        raise AssertionError("\n".join(lines))


def _short(name: str, limit: float, signals: Scores) -> Iterator[str]:
    """A line for each subject that falls short of the limit, or one that says that nothing was scored."""
    if all(each["score"] is None for each in signals):
        why = sorted({each["reason"] or each["outcome"] for each in signals})
        yield f"{name}: nothing was scored ({', '.join(why) or 'no signal'})"
        return
    short = [line for each in signals if (line := _line(name, limit, each)) is not None]
    yield from short[:MOST]
    if len(short) > MOST:
        yield f"{name}: {len(short) - MOST} more"


def _line(name: str, limit: float, signal: Mapping[str, Any]) -> str | None:
    subject = f"session `{signal['session_id']}` of `{signal['service']}`"
    if signal["trace_id"] is not None:
        subject = f"trace `{signal['trace_id']}` of {subject}"
    if signal["outcome"] == "failed":
        return f"{name}: {subject} has no score: {signal['error']['message']}"
    if signal["score"] is None or signal["score"] >= limit:
        return None
    why = f": {signal['explanation']}" if signal["explanation"] else ""
    return f"{name}: {subject} scores {signal['score']:.4f}, below {limit:g}{why}"
