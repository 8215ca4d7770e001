"""Which tool arguments that recordings are expected to hold are nowhere in their bytes.

usage: scripts/carried.py CAPTURES [STACK ...]

Every attribute of every span, event, link, scope and resource is searched, with what is inside of it: JSON in strings,
base64, escapes, nested to any depth. A value that is found nowhere cannot be read by anybody.
"""

import base64
import binascii
import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Every text, number and key in a value, unwrapped."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts(inner, depth)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, depth)
    elif isinstance(value, str):
        yield value
        if depth < 6:
            yield from inside(value, depth + 1)
    elif value is not None:
        yield json.dumps(value)


def inside(text: str, depth: int) -> Iterator[str]:
    """What a text holds once it is decoded in each of the ways that are used."""
    for decode in (json.loads, lambda t: base64.b64decode(t, validate=True).decode()):
        try:
            inner = decode(text)
        except (ValueError, binascii.Error):
            continue
        if inner != text:
            yield from texts(inner, depth)


def of_trace(path: Path, trace_ids: set[str]) -> list[str]:
    """All texts of some traces; a session id is no argument."""
    found = []
    with path.open("rb") as stream:
        while head := stream.read(4):
            body = stream.read(struct.unpack(">I", head)[0])
            tree = MessageToDict(ExportTraceServiceRequest.FromString(body))
            for resource in tree.get("resourceSpans", ()):
                found += texts(resource.get("resource", {}))
                for scope in resource.get("scopeSpans", ()):
                    for span in scope.get("spans", ()):
                        if base64.b64decode(span["traceId"]).hex() in trace_ids:
                            found += texts(span)
    return [text for text in found if not text.startswith("sess-")]


def leaves(value: Any) -> Iterator[str]:
    """The plain values of arguments; a truth value or an empty list proves nothing."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    elif isinstance(value, str | float) or (
        isinstance(value, int) and not isinstance(value, bool) and value > 9
    ):
        yield str(value)


def main(folder: Path, stacks: set[str]) -> None:
    """One line per call of which something is nowhere."""
    for path in sorted(folder.glob("*/*.expect.yaml")):
        if stacks and path.parent.name not in stacks:
            continue
        expected = yaml.safe_load(path.read_text())
        recording = path.with_name(path.name.replace(".expect.yaml", ".otlp"))
        for turn in expected["turn_list"]:
            held = of_trace(recording, {trace["trace_id"] for trace in turn["traces"]})
            for call in turn["tool_calls_executed"]:
                wanted = list(leaves(call["args"]))
                missing = [value for value in wanted if not any(value in text for text in held)]
                if call.get("exported") and missing:
                    where = f"{expected['stack']}/{expected['scenario']} turn {turn['turn']}"
                    line = f"{where}: {call['name']}: of {wanted}, nowhere: {missing}"
                    sys.stdout.write(line + "\n")


main(Path(sys.argv[1]), set(sys.argv[2:]))
