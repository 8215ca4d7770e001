"""How much of what recordings carry is read right: every expectation of a `*.expect.yaml` as one claim.

The rules are those of the acceptance check of recordings, with one more: an expectation counts only when the bytes
hold it. The flags of the expectation files say that a call is there; they do not say that its arguments are
(google-adk without content exports names only).
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import yaml

from evaluators.dialects.decoding.values import as_dict
from evaluators.dialects.show import show
from tests.support import made_spans
from tests.support.recordings import requests, traces

Shown = dict[str, Any]
_ROLES = {"agent", "assistant"}
"""As names of agents they say nothing: the words are in many other places."""


class Claim(NamedTuple):
    """One expected value and whether it was read."""

    stack: str
    field: str
    where: str
    held: bool
    detail: str

    @classmethod
    def of(cls, stack: str, field: str, where: str, held: object, detail: object) -> Self:
        """`where`: the scenario, and the turn of a claim about one."""
        return cls(stack, field, f"{stack}/{where}", bool(held), repr(detail)[:200])


def assert_most_hold(claims: Sequence[Claim], share: float) -> None:
    """At least that share of them, and there are some."""
    assert claims, "no recordings"
    missed = [f"{c.field} {c.where} {c.detail}" for c in claims if not c.held]
    assert len(missed) <= (1 - share) * len(claims), "\n".join(missed)


def score(folder: Path) -> Iterator[Claim]:
    """All claims of all recordings with expectations in `folder`."""
    for path in sorted(folder.glob("*/*.expect.yaml")):
        scenario = path.name.removesuffix(".expect.yaml")
        recording = path.with_name(f"{scenario}.otlp")
        expected: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        has_logs = path.with_name(f"{scenario}.logs.otlp").exists()
        found = made_spans.traces(path.parent, scenario) if has_logs else traces(recording)
        seen = {trace.trace_id: show(trace) for trace in found}
        raw = b"".join(requests(recording))
        for turn in expected["turn_list"]:
            yield from _turn(expected, turn, seen, raw)


def _turn(
    expected: Mapping[str, Any], turn: Mapping[str, Any], seen: Mapping[str, Shown], raw: bytes
) -> Iterator[Claim]:
    stack, scenario = expected["stack"], expected["scenario"]
    found = [seen[t["trace_id"]] for t in turn["traces"] if t["trace_id"] in seen]
    main = [t for t in found if t["trace_id"] == turn["main_trace_id"]]
    texts = main if len(turn["traces"]) == 1 else found

    def claim(field: str, held: object, detail: object) -> Claim:
        return Claim.of(stack, field, f"{scenario} turn {turn['turn']}", held, detail)

    for side in ("input", "output"):
        if turn[f"{side}_exported"] and turn[side] is not None:
            got = [t[side] for t in texts]
            yield claim(side, any(text(g) == text(turn[side]) for g in got), got)
    if turn["tokens_exported"] and scenario != "killed":
        want = [turn["input_tokens"], turn["output_tokens"]]
        sums = [sum(t["tokens"][k] or 0 for t in found) for k in ("input", "output")]
        yield claim("tokens", sums == want, (sums, want))
    if expected.get("session_exported"):
        got = [t["session_id"] for t in found]
        yield claim("session_id", expected["session_id"] in got, got)
    offered = [name for name in turn["tools_offered"] if name.encode() in raw]
    if turn["tool_definitions_exported"] and offered:
        got = {name for t in found for name in t["tools_offered"]}
        yield claim("tools_offered", set(offered) == got, got)
    agents = {name for name in turn.get("agents", ()) if name.encode() in raw} - _ROLES
    if agents:
        got = {name for t in found for name in t["agents"]}
        yield claim("agents", agents <= got, got)
    if (model := turn.get("model")) and model.encode() in raw:
        got = [name for t in found for name in t["models"]]
        named = (model, turn["model_requested"])
        yield claim("models", any(name.endswith(named) for name in got), got)
    if (user := expected.get("user_id")) and user.encode() in raw:
        yield claim("user_id", user in [t["user_id"] for t in found], user)
    yield from (claim(*each) for each in _calls(turn, found, raw, scenario))


def _calls(
    turn: Mapping[str, Any], found: Sequence[Shown], raw: bytes, scenario: str
) -> Iterator[tuple[str, bool, object]]:
    left = [call for trace in found for call in trace["tool_calls"]]
    matched = 0
    for want in turn["tool_calls_executed"]:
        if not want.get("exported"):
            continue
        named = [c for c in left if c["name"] == want["name"]]
        if not _carried(want["args"], raw):
            matched += bool(named)
            if named:
                left.remove(named[0])
            continue
        fits = [c for c in named if scenario == "trunc" or same(c["arguments"], want["args"])]
        best = next((c for c in fits if _fits(want, c)), fits[0] if fits else None)
        yield "tool_call", best is not None, (want["name"], want["args"], left)
        if best is None:
            continue
        left.remove(best)
        matched += 1
        if scenario != "killed":
            yield "tool_error", bool(best["error"]) is bool(want["is_error"]), want["name"]
        if not want["is_error"] and scenario != "trunc":
            yield "tool_result", _has_result(want.get("result"), best["result"]), best["result"]
    if turn["tool_calls_executed"] or turn["tool_calls_requested"]:
        extra = len(left) - max(0, len(turn["tool_calls_requested"]) - matched)
        yield "tool_extra", extra <= 0, [c["name"] for c in left]


def _fits(want: Mapping[str, Any], call: Shown) -> bool:
    if bool(call["error"]) is not bool(want["is_error"]):
        return False
    return bool(want["is_error"]) or _has_result(want.get("result"), call["result"])


def _carried(value: Any, raw: bytes) -> bool:
    """Whether every key and every plain value of the arguments stands in the recording."""
    if isinstance(value, dict):
        items = as_dict(value)
        return all(
            f'{key}"'.encode() in raw.replace(b"'", b'"').replace(b'\\"', b'"') and _carried(v, raw)
            for key, v in items.items()
        )
    if isinstance(value, bool) or value is None or value == []:
        return True
    return str(value).encode() in raw


def text(value: Any) -> str:
    whole = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    return re.sub(r"\s+", " ", whole).strip()


def same(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-9)
    if isinstance(a, dict) and isinstance(b, dict):
        one, two = as_dict(a), as_dict(b)
        return one.keys() == two.keys() and all(same(one[k], two[k]) for k in one)
    return text(a) == text(b)


def has_letters_of(want: str, got: str, size: int = 400) -> bool:
    """Whether the beginning of `want` stands in `got`, of which only letters and digits are left."""
    return letters(want)[:size] in got


def letters(value: Any) -> str:
    return re.sub(
        r"\W", "", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )


def _has_result(want: str | None, got: Any) -> bool:
    if want is None:
        return True
    beginning = want.split("...[")[0] if re.search(r"\.\.\.\[\d+ characters\]$", want) else want
    return letters(beginning)[:600] in letters(got)
