"""Recordings of agents and SDKs that speak in log records: what they carry is what we read.

`SPANWISE_LOG_CAPTURES` names another folder of recordings with expectations: of the programs whose recordings hold
their vendors' prompts and are not kept here.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from collector.config.tree import Config
from evaluators.dialects.decoding.values import unwrap
from evaluators.dialects.show import show
from scripts.research.carried_logs import EXPECTATION, Lack, Recording, correct, lacks, searched
from tests.golden.test_changed_recordings import sent
from tests.support.capture_score import (
    Claim,
    Shown,
    assert_most_hold,
    has_letters_of,
    letters,
    same,
    text,
)
from tests.support.made_spans import traces
from tests.support.recorded_signals import signals_of

_LOGS_ONLY = ("claude_code", "codex", "qwen_code_old", "genai_openai_logs_only")
_TELLS_FAILURE = ("claude_code", "qwen_code")
"""The outcome is an attribute of its own, sent without the result."""


def score(folder: Path, scenario: str, expected: Mapping[str, Any]) -> Iterator[Claim]:
    """Every known value of a recording as one claim, by the rules of the acceptance check.

    A value counts where it occurs in the bytes of the logs or traces; a trace belongs to the turn during which it
    started; a turn that is spread over several traces is their union.
    """
    turns: list[dict[str, Any]] = expected["turn_list"]
    starts = [*_starts(turns)]
    found: list[list[Shown]] = [[] for _ in turns]
    every = sorted(map(show, traces(folder, scenario)), key=lambda t: t["start"])
    for trace in every:
        at = datetime.fromisoformat(trace["start"]).timestamp()
        found[max((i for i, start in enumerate(starts) if start <= at), default=0)].append(trace)
    keys: dict[str, int] = expected.get("session_carried_in") or {}
    carried = any(key.startswith(("logs:", "traces:")) for key in keys)
    session = expected.get("session_id") if carried else None
    stack = expected["stack"]
    for turn, mine in zip(turns, found, strict=True):
        for field, held, detail in _turn(turn, mine, stack, session):
            yield Claim.of(stack, field, f"{scenario} turn {turn['turn']}", held, detail)
    asked = sum(_is_exported(turn.get("input_exported")) for turn in turns)
    if asked and stack.startswith(_LOGS_ONLY):
        # A person's prompts are as many traces: not one for a helper's report or a title.
        prompts = [t["input"] for t in every if session in (None, t["session_id"]) and t["input"]]
        yield Claim.of(stack, "turns", scenario, len(prompts) == asked, prompts)


def _starts(turns: Sequence[Mapping[str, Any]]) -> Iterator[float]:
    """A turn's first record may stand a little before its prompt was sent: at most half of the pause before it."""
    end: float | None = None
    for turn in turns:
        start = turn.get("start_unix_s") or 0
        pause = start - end if start and end else 1.0
        yield start - min(0.5, max(0.002, pause / 2))
        end = turn.get("end_unix_s")


def _is_exported(flags: Mapping[str, bool] | None) -> bool:
    return bool(flags) and bool(flags.get("logs") or flags.get("traces"))


def _turn(
    turn: Mapping[str, Any], mine: Sequence[Shown], stack: str, session: str | None
) -> Iterator[tuple[str, object, object]]:
    if _is_exported(turn.get("input_exported")) and turn.get("input"):
        got = [t["input"] for t in mine]
        yield "input", text(turn["input"]) in map(text, got), got
    if _is_exported(turn.get("output_exported")) and turn.get("output"):
        got = [t["output"] for t in mine]
        head = letters(turn["output"])[:2000]
        yield "output", head in [letters(g or "")[:2000] for g in got], got
    if _is_exported(turn.get("tokens_exported")):
        sums = [sum(t["tokens"][k] or 0 for t in mine) for k in ("input", "output")]
        yield "tokens", sums == [turn["input_tokens"], turn["output_tokens"]], sums
    if session is not None:
        got = [t["session_id"] for t in mine]
        yield "session_id", session in got, got
    yield from _calls(turn, mine, stack)


def _calls(
    turn: Mapping[str, Any], mine: Sequence[Shown], stack: str
) -> Iterator[tuple[str, object, object]]:
    requested: list[dict[str, Any]] = turn.get("tool_calls_requested") or []
    left = [call for trace in mine for call in trace["tool_calls"]]
    matched = 0
    for want in turn.get("tool_calls_executed") or ():
        asked = _request_of(want, requested)
        if not _is_exported(asked.get("name_exported")):
            continue
        args = asked.get("args") if _is_exported(asked.get("args_exported")) else None
        tells = stack.startswith(_TELLS_FAILURE)
        failed = any(map(want.get, ("rejected", "expected_failure", "is_error")))
        failed = failed or bool(tells and want.get("is_error_told_to_model"))
        fits = [c for c in left if text(c["name"]).endswith(text(want["name"]))]
        fits = [c for c in fits if args is None or same(_object(c["arguments"]), _object(args))]
        best = next((c for c in fits if bool(c["error"]) is failed), fits[0] if fits else None)
        yield "tool_call", best is not None, (want["name"], args, left)
        if best is None:
            continue
        left.remove(best)
        matched += 1
        result = _is_exported(want.get("result_exported"))
        if want.get("answered", True) and (want.get("rejected") or result or tells):
            yield "tool_error", bool(best["error"]) is failed, (want["name"], best["error"])
        if want.get("rejected"):
            yield "rejected", best["rejected"], want["name"]
        truth = want.get("result_given_to_model") or want.get("error") or want.get("result")
        if result and truth:
            yield "tool_result", _has_result(best, truth), best["result"]
    if requested:
        extra = len(left) - max(0, len(requested) - matched)
        yield "tool_extra", extra <= 0, [c["name"] for c in left]


def _request_of(want: Mapping[str, Any], requested: Sequence[dict[str, Any]]) -> dict[str, Any]:
    for call in requested:
        if want.get("id"):
            if call.get("id") == want["id"]:
                return call
        elif call["name"] == want["name"] and same(call.get("args"), want.get("args")):
            return call
    return {}


def _object(value: Any) -> Any:
    return unwrap(value) if isinstance(value, str) else value


def _has_result(call: Shown, truth: Any) -> bool:
    """The result or the error has the beginning of what the model was given, or is part of it."""
    said = letters(call["result"] or "") + letters(call["error"] or "")
    plain = re.sub(r"<system-reminder>.*", "", str(truth), flags=re.DOTALL)
    return bool(said) and (has_letters_of(plain, said) or said in letters(truth))


OURS = Path(__file__).parents[1] / "data" / "captures_logs"
FOLDER = Path(os.environ.get("SPANWISE_LOG_CAPTURES") or OURS)
STACKS = sorted({path.parent.name for path in FOLDER.glob("*/*.expect.yaml")})
LACKING = {
    ("genai_oai_agents_event_only", "loop", "tool_call"): 12,
    ("opencode", "mcp", "tokens"): 1,
    ("opencode", "mcp", "tool_call"): 1,
    ("opencode", "rejected", "tokens"): 1,
    ("opencode", "rejected", "tool_call"): 1,
    ("opencode", "retry", "tokens"): 1,
    ("opencode", "session", "tokens"): 2,
    ("opencode", "session", "tool_call"): 1,
    ("qwen_code", "session", "tool_call"): 3,
}
"""Values said to be carried that stand in no byte: `python -m scripts.research.carried_logs FOLDER` names each."""

MISREAD = {
    ("tool_result", "codex/retry turn 1"),
    ("tool_result", "codex_plain/retry turn 1"),
    ("tool_error", "genai_openai_logs_only/retry turn 1"),
}
"""Of our recordings, what is not read as it is said to be: all else is, without an exception."""


@cache
def recordings() -> list[tuple[str, str, list[Lack], list[Claim]]]:
    """Stack, scenario, what it lacks, and the claims without that, of each recording."""
    found: list[tuple[str, str, list[Lack], list[Claim]]] = []
    for path, expected, lacking in searched(FOLDER):
        correct(lacking)
        scenario = path.name.removesuffix(EXPECTATION)
        claimed = [*score(path.parent, scenario, expected)]
        found.append((expected["stack"], scenario, lacking, claimed))
    return found


def claims() -> list[Claim]:
    return [claim for *_, found in recordings() for claim in found]


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_that_speaks_in_logs_is_read_right(stack: str) -> None:
    mine = [each for each in claims() if each.stack == stack]
    if FOLDER != OURS:
        assert_most_hold(mine, 0.9)
    else:
        assert_most_hold([each for each in mine if (each.field, each.where) not in MISREAD], 1)


def test_all_stacks_that_speak_in_logs_are_read_right() -> None:
    assert_most_hold(claims(), 0.97)


def test_what_is_said_to_be_carried_and_is_not_is_known() -> None:
    lacking: Counter[tuple[str, str, str]] = Counter()
    for stack, scenario, found, _ in recordings():
        lacking.update((stack, scenario, lack.field) for lack in found)
    here = {recording[:2] for recording in recordings()}

    assert lacking == {key: count for key, count in LACKING.items() if key[:2] in here}


def test_a_value_that_is_there_is_not_said_to_be_missing() -> None:
    """Of a recording that is read right, some values changed: only those are missing."""
    path = FOLDER / "claude_code_traces" / "retry.expect.yaml"
    expected = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert list(lacks(expected, Recording(path), by_id=True)) == []

    turn = expected["turn_list"][0]
    first, second, *_ = turn["tool_calls_requested"]
    first["args"]["command"], second["id"] = "ls nowhere", "call-of-nobody"
    turn["llm_calls_ok"], turn["input_tokens"] = 99, 10**6

    found = list(lacks(expected, Recording(path), by_id=True))
    assert [(each.bearer is turn, each.flags) for each in found] == [
        (False, ("args_exported",)),
        (False, ("name_exported", "args_exported")),
        (True, ("tokens_exported",)),
    ]


@pytest.mark.parametrize(("scenario", "reports"), [("session", 0), ("subagent", 1)])
def test_signals_name_the_traces_that_claude_code_sent(scenario: str, reports: int) -> None:
    """One for each prompt of a person; a helper's report begins a trace of its own, and stands in its prompt's."""
    recording = FOLDER / "claude_code_traces" / f"{scenario}.otlp"
    roots = [span for *_, span in sent(recording) if not span.parent_span_id]
    roots.sort(key=lambda span: span.start_time_unix_nano)
    prompts = {span.trace_id.hex() for span in roots[: len(roots) - reports]}

    signals = signals_of(Config(workers=0), recording.with_suffix(".logs.otlp"), recording)

    assert {each["trace_id"] for each in signals if each["evaluator"] == "confidence"} == prompts
