"""Expected answers and tools per trace: the entries of the expectations file."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, cast

import msgspec

from evaluators.digest import canonical
from evaluators.errors import ExpectationError
from evaluators.model import JSON, ToolCall, Trace


class ExpectedTool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool call that should have happened; `arguments` None = any arguments."""

    name: str
    arguments: dict[str, JSON] | None = None


class Expectation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The expected result of one trace. A field that is None is not checked."""

    output: str | None = None
    regex: str | None = None
    json_schema: dict[str, JSON] | bool | None = None
    tools: tuple[ExpectedTool, ...] | None = None
    """In the order of the expected steps."""
    tool_order_matters: bool = True
    answer_uses_tools: bool | None = None
    """None: derived from the answer."""
    outcomes: tuple[str, ...] = ()
    emphasis: str | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of its canonical JSON: part of the id of a signal that used it."""
        return hashlib.sha256(canonical(msgspec.to_builtins(self))).hexdigest()


class Match(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The traces that an entry applies to: every field that is set must fit."""

    task: str | None = None
    trace_id: str | None = None
    session_id: str | None = None
    turn: Annotated[int, msgspec.Meta(ge=1)] | None = None
    input: str | None = None
    """Equal after trimming both."""


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    match: Match


class Expectations:
    """The file's entries; the first whose `match` fits wins.

    Raises ExpectationError: an entry is malformed or matches every trace; the message names it (1-based).
    """

    def __init__(self, entries: Sequence[JSON]) -> None:
        self._entries = tuple(_read(number, entry) for number, entry in enumerate(entries, 1))

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, trace: Trace, turn: int | None) -> Expectation | None:
        """The expectation for a trace; None without one. `turn`: its place in the session, 1-based; None: unknown."""
        values = {**_values(trace), "turn": turn}
        for conditions, expectation in self._entries:
            if all(values[key] == value for key, value in conditions.items()):
                return expectation
        return None

    def turns(self, trace: Trace) -> tuple[int, ...]:
        """The places in its session at which an entry would fit the trace for that place, in order."""
        values = _values(trace)
        found = {
            cast(int, conditions["turn"])
            for conditions, _ in self._entries
            if "turn" in conditions
            and all(values[key] == value for key, value in conditions.items() if key != "turn")
        }
        return tuple(sorted(found))


def _values(trace: Trace) -> dict[str, object]:
    """What `match` is compared with, the turn apart."""
    return {
        "task": trace.task_id,
        "trace_id": trace.trace_id,
        "session_id": trace.session_id,
        "input": None if trace.input is None else trace.input.strip(),
    }


def case_of(trace: Trace, *, corrected: str | None = None) -> dict[str, JSON]:
    """An entry of an expectations file that a trace meets, to be corrected by whoever knows better.

    It matches by task and question, else by trace id. Its tools are the calls that did not fail, in order.
    `corrected`: the output that a person expected.
    """
    match = {"task": trace.task_id, "input": trace.input and trace.input.strip()}
    found = {key: value for key, value in match.items() if value}
    entry: dict[str, JSON] = {"match": found or {"trace_id": trace.trace_id}}
    output = trace.output if corrected is None else corrected
    if output is not None:
        entry["output"] = output
    if tools := [_expected(call) for call in trace.tool_calls if call.error is None]:
        entry["tools"] = tools
    return entry


def _expected(call: ToolCall) -> dict[str, JSON]:
    """Without arguments where they are not an object: then any will do."""
    arguments: JSON = call.arguments
    if not isinstance(arguments, dict):
        return {"name": call.name}
    return {"name": call.name, "arguments": cast(dict[str, JSON], arguments)}


def _read(number: int, entry: JSON) -> tuple[Mapping[str, JSON], Expectation]:
    try:
        match = msgspec.convert(entry, _Entry).match
        fields = {key: value for key, value in entry.items() if key != "match"}
        expectation = msgspec.convert(fields, Expectation)
    except (msgspec.ValidationError, TypeError) as error:
        raise ExpectationError(f"expectations, entry {number}: {error}") from error
    conditions = {
        key: value for key, value in msgspec.to_builtins(match).items() if value is not None
    }
    if not conditions:
        raise ExpectationError(f"expectations, entry {number}: `match` is empty")
    if match.input is not None:
        conditions["input"] = match.input.strip()
    return conditions, expectation
