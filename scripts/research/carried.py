"""Expectations of recordings whose values are nowhere in the recorded bytes.

usage: python -m scripts.research.carried CAPTURES [--corrected FOLDER]

Every attribute of every span, event, link, scope and resource is searched, with what is inside of it: JSON in strings,
base64, escapes, nested to any depth. A value that is found nowhere cannot be read. With --corrected, the recordings
are copied to FOLDER with their flags set as the recordings' README defines them: exported = really in the spans.
"""

import argparse
import base64
import binascii
import json
import shutil
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evaluators.dialects.decoding.values import as_dict, as_list


def _base64(text: str) -> str:
    return base64.b64decode(text, validate=True).decode()


_DECODERS: tuple[Callable[[str], Any], ...] = (json.loads, _base64)


def texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Every text, number and key in a value, unwrapped."""
    if isinstance(value, dict):
        for key, inner in as_dict(value).items():
            yield key
            yield from texts(inner, depth)
    elif isinstance(value, list):
        for inner in as_list(value):
            yield from texts(inner, depth)
    elif isinstance(value, str):
        yield value
        if depth < 6:
            yield from inside(value, depth + 1)
    elif value is not None:
        yield json.dumps(value)


def inside(text: str, depth: int) -> Iterator[str]:
    """The texts inside one that is JSON or base64."""
    for decode in _DECODERS:
        try:
            inner = decode(text)
        except (ValueError, binascii.Error):
            continue
        if inner != text:
            yield from texts(inner, depth)


def spans_of(path: Path, trace_ids: set[str]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The spans of some traces, each with its resource."""
    with path.open("rb") as stream:
        while head := stream.read(4):
            body = stream.read(struct.unpack(">I", head)[0])
            tree = MessageToDict(ExportTraceServiceRequest.FromString(body))
            for resource in tree.get("resourceSpans", ()):
                for scope in resource.get("scopeSpans", ()):
                    for span in scope.get("spans", ()):
                        if base64.b64decode(span["traceId"]).hex() in trace_ids:
                            yield span, resource.get("resource", {})


class RecordedTurn:
    """The texts in the traces of one turn."""

    def __init__(self, path: Path, turn: dict[str, Any]) -> None:
        spans = list(spans_of(path, {trace["trace_id"] for trace in turn["traces"]}))
        texts_held = [text for each in spans for part in each for text in texts(part)]
        # A session id is not an argument.
        self.texts = [text for text in texts_held if not text.startswith("sess-")]
        self.has_error = "is_error" in self.texts or any(
            "ERROR" in span.get("status", {}).get("code", "") for span, _ in spans
        )
        self.metered = sum(any("token" in key for key in keys(span)) for span, _ in spans)

    def missing(self, value: Any) -> list[str]:
        """The plain values in `value` that are nowhere."""
        return [leaf for leaf in leaves(value) if not any(leaf in text for text in self.texts)]

    def lacks(self, turn: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
        """Flags without their values in the recording: the object with the flag, the flag, and why."""
        for call in turn["tool_calls_executed"]:
            if not call.get("exported"):
                continue
            error = str(call.get("error") or "")
            if nowhere := self.missing(call["args"]):
                yield call, "exported", f"{call['name']}: nowhere: {nowhere}"
            elif (
                call["is_error"]
                and not self.has_error
                and self.missing(error.split(":", maxsplit=1)[0])
            ):
                yield call, "exported", f"{call['name']}: its error is nowhere, nor any error"
        # A call that failed has no counts to export.
        if (
            turn["tokens_exported"]
            and not self.has_error
            and self.metered < turn.get("llm_calls", 0)
        ):
            why = f"{turn['llm_calls']} model calls, {self.metered} spans with a token count"
            yield turn, "tokens_exported", why


def keys(span: dict[str, Any]) -> Iterator[str]:
    """Of its attributes and those of its events."""
    for holder in (span, *span.get("events", ())):
        for attribute in holder.get("attributes", ()):
            yield attribute["key"]
            yield from texts(attribute.get("value", {}).get("stringValue", ""))


def leaves(value: Any) -> Iterator[str]:
    """The plain values of arguments; a truth value or an empty list proves nothing."""
    if isinstance(value, dict):
        for inner in as_dict(value).values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in as_list(value):
            yield from leaves(inner)
    elif isinstance(value, str | float) or (
        isinstance(value, int) and not isinstance(value, bool) and value > 9
    ):
        yield str(value)


def asked() -> tuple[Path, bool]:
    """The recordings to search, by the command line, and whether their expectations are corrected: then a copy."""
    parser = argparse.ArgumentParser()
    parser.add_argument("captures", type=Path)
    parser.add_argument("--corrected", type=Path)
    arguments = parser.parse_args()
    folder: Path = arguments.captures
    if arguments.corrected:
        shutil.copytree(folder, arguments.corrected, copy_function=shutil.copyfile)
        folder = arguments.corrected
    return folder, arguments.corrected is not None


def main() -> None:
    """One line per flag that is set for nothing."""
    folder, is_corrected = asked()
    for path in sorted(folder.glob("*/*.expect.yaml")):
        expected = yaml.safe_load(path.read_text())
        recording = path.with_name(path.name.replace(".expect.yaml", ".otlp"))
        wrong = False
        for turn in expected["turn_list"]:
            for bearer, flag, why in list(RecordedTurn(recording, turn).lacks(turn)):
                where = f"{expected['stack']}/{expected['scenario']} turn {turn['turn']}"
                sys.stdout.write(f"{where}: {flag}: {why}\n")
                bearer[flag] = False
                wrong = True
        if wrong and is_corrected:
            path.write_text(yaml.safe_dump(expected, sort_keys=False, allow_unicode=True))


if __name__ == "__main__":
    main()
