"""Expectations of recordings of log records whose values are nowhere in the recorded bytes.

usage: python -m scripts.research.carried_logs CAPTURES_LOGS [--corrected FOLDER]

Every attribute and body of every span, event, log record, scope and resource of a recording is searched, with what is
inside of it: JSON in strings, base64, escapes, nested to any depth. A value that is found nowhere cannot be read; a
session id is not an argument of a call. With --corrected, the recordings are copied to FOLDER with their flags set as
the recordings' README defines them: exported = it really occurs in that signal's bytes.
"""

import struct
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from scripts.research.carried import asked, leaves, texts

EXPECTATION = ".expect.yaml"
COUNTS = ("input_tokens", "input_token_count", "prompt_tokens", "token_count.prompt")
"""How the key ends under which a model call tells its input tokens."""
_SESSIONS = ("sess-", "ses_")
FILES = ((".otlp", ExportTraceServiceRequest), (".logs.otlp", ExportLogsServiceRequest))


class Lack(NamedTuple):
    """A flag without its value: what bears it, its name, the field that is scored, and why."""

    bearer: dict[str, Any]
    flags: Sequence[str]
    field: str
    why: str


class Recording:
    """What the bytes of one recording hold."""

    def __init__(self, expectation: Path) -> None:
        self._stem = str(expectation).removesuffix(EXPECTATION)

    @cached_property
    def trees(self) -> list[dict[str, Any]]:
        """Its requests."""
        return [
            MessageToDict(kind.FromString(body), preserving_proto_field_name=True)
            for suffix, kind in FILES
            for body in _requests(Path(self._stem + suffix))
        ]

    @cached_property
    def held(self) -> list[str]:
        """Every text in it but session ids."""
        every = {text for tree in self.trees for text in texts(tree)}
        return [text for text in every if not text.startswith(_SESSIONS)]

    def has(self, value: str) -> bool:
        """Whether it stands anywhere but in a session id."""
        return any(value in text for text in self.held)

    def counts(self, since: float, before: float) -> Iterator[int]:
        """The input tokens that spans and records of that time tell."""
        for item in _items(self.trees):
            at = item.get("start_time_unix_nano") or item.get("time_unix_nano") or 0
            at = int(at) or int(item.get("observed_time_unix_nano") or 0)
            if since <= at / 1e9 < before:
                told = [
                    int(next(iter(each["value"].values())))
                    for each in item.get("attributes", ())
                    if each["key"].endswith(COUNTS) and each.get("value")
                ]
                yield from told[:1]


def lacks(expected: dict[str, Any], recording: Recording, *, by_id: bool) -> Iterator[Lack]:
    """Flags of a recording without their values; `by_id`: its stack tells calls by the ids of the model."""
    turns: list[dict[str, Any]] = expected["turn_list"]
    for turn, following in zip(turns, [*turns[1:], None], strict=True):
        for call in turn.get("tool_calls_requested") or ():
            if by_id and call.get("id") and not recording.has(call["id"]):
                if _told(call, "name_exported"):
                    why = f"{call['name']}: {call['id']} is nowhere"
                    yield Lack(call, ("name_exported", "args_exported"), "tool_call", why)
            elif _told(call, "args_exported"):
                nowhere = [leaf for leaf in leaves(call["args"]) if not recording.has(leaf)]
                if nowhere:
                    why = f"{call['name']}: nowhere: {nowhere}"
                    yield Lack(call, ("args_exported",), "tool_call", why)
        if _told(turn, "tokens_exported"):
            before = float("inf") if following is None else following["start_unix_s"]
            found = list(recording.counts(turn["start_unix_s"] - 0.5, before))
            # None at all: this stack tells them in a way that is not looked for here.
            if 0 < len(found) < turn["llm_calls_ok"] and sum(found) < turn["input_tokens"]:
                why = f"{turn['llm_calls_ok']} answers of {turn['input_tokens']} tokens, told: {found}"
                yield Lack(turn, ("tokens_exported",), "tokens", why)


def searched(folder: Path) -> Iterator[tuple[Path, dict[str, Any], list[Lack]]]:
    """Each expectation of a folder of stacks, what stands in it, and what its recording lacks of that."""
    for stack in sorted({path.parent for path in folder.glob(f"*/*{EXPECTATION}")}):
        found = [
            (path, yaml.safe_load(path.read_text("utf-8")), Recording(path))
            for path in sorted(stack.glob(f"*{EXPECTATION}"))
        ]
        by_id = any(
            recording.has(call["id"])
            for _, expected, recording in found
            for turn in expected["turn_list"]
            for call in turn.get("tool_calls_requested") or ()
            if call.get("id")
        )
        for path, expected, recording in found:
            yield path, expected, list(lacks(expected, recording, by_id=by_id))


def correct(found: Sequence[Lack]) -> None:
    """Take the flags back."""
    for lack in found:
        for flag in lack.flags:
            lack.bearer[flag] = dict.fromkeys(lack.bearer[flag], False)


def _told(bearer: dict[str, Any], flag: str) -> bool:
    flags: dict[str, bool] = bearer.get(flag) or {}
    return bool(flags.get("logs") or flags.get("traces"))


def _requests(path: Path) -> Iterator[bytes]:
    if not path.exists():
        return
    with path.open("rb") as stream:
        while head := stream.read(4):
            yield stream.read(struct.unpack(">I", head)[0])


def _items(trees: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Spans and log records."""
    for tree in trees:
        for resource in (*tree.get("resource_spans", ()), *tree.get("resource_logs", ())):
            for scope in (*resource.get("scope_spans", ()), *resource.get("scope_logs", ())):
                yield from scope.get("spans", ())
                yield from scope.get("log_records", ())


def main() -> None:
    """One line per flag that is set for nothing."""
    folder, is_corrected = asked()
    for path, expected, found in searched(folder):
        for lack in found:
            where = f"{path.parent.name}/{path.name.removesuffix(EXPECTATION)}"
            sys.stdout.write(f"{where}: {', '.join(lack.flags)}: {lack.why}\n")
        correct(found)
        if found and is_corrected:
            path.write_text(yaml.safe_dump(expected, sort_keys=False, allow_unicode=True), "utf-8")


if __name__ == "__main__":
    main()
