"""How often a trace and its outcomes are encoded and decoded on the way from the workers to the sinks, counted.

    python -m tests.bench.passes

A real service with one worker takes one trace. Every encoder and decoder of msgspec, in all of its processes, is
wrapped: a call is a pass of the trace when its bytes hold a word that stands in a model's answer in the middle of it,
and a pass of its outcomes when they hold a word of one outcome's explanation. So a part of a trace that is carried by
itself, its id or its numbers, is not a pass, while to look for one field in the record of a whole trace is one.
"""

import json
import tempfile
from collections import Counter
from pathlib import Path

from tests.support.dialect_spans import SpanSpec, request
from tests.support.sender import send
from tests.support.service import Service

TRACE_WORD, OUTCOME_WORD = "quartztrace", "quartzoutcome"
MOST_PASSES = 7
ENOUGH = "x" * 2000
"""So that the trace is no smaller than what is written beside it."""

_SPY = f'''
import atexit, json, os, sys
import msgspec

WORDS = {{"trace": b"{TRACE_WORD}", "outcomes": b"{OUTCOME_WORD}"}}
FOUND = []
READ = {{each: each.decode for each in (msgspec.msgpack, msgspec.json)}}


def leaves(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from leaves(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from leaves(each)


def note(what, data, module):
    data = data.encode() if isinstance(data, str) else bytes(data)
    for kind, word in WORDS.items():
        if word in data and any(word.decode() in each for each in leaves(READ[module](data))):
            frame = sys._getframe(2)
            while frame.f_code.co_filename.endswith("codec.py"):
                frame = frame.f_back
            _, is_ours, path = frame.f_code.co_filename.rpartition("/collector/")
            if is_ours:
                FOUND.append((kind, what, f"{{path}}:{{frame.f_code.co_name}}"))


class Wrapped:
    def __init__(self, *arguments, **options):
        self.inner = self.made_by(*arguments, **options)

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def __class_getitem__(cls, _):
        return cls

    def encode(self, value):
        data = self.inner.encode(value)
        note("encode", data, self.module)
        return data

    def encode_into(self, value, buffer, offset=0):
        self.inner.encode_into(value, buffer, offset)
        note("encode", memoryview(buffer)[offset:], self.module)

    def decode(self, data):
        note("decode", data, self.module)
        return self.inner.decode(data)


def write():
    if FOUND:
        with open(os.path.join(os.environ["SPANWISE_TEST_PASSES"], str(os.getpid())), "w") as file:
            json.dump(FOUND, file)


def say_a_word():
    """One outcome of ours says a word that is nowhere else."""
    from collector.reading.trace_scoring import TraceScoring

    scored = TraceScoring.outcomes

    def outcomes(self, trace):
        found = scored(self, trace)
        first, *others = found.outcomes
        first = msgspec.structs.replace(first, explanation="{OUTCOME_WORD}")
        return msgspec.structs.replace(found, outcomes=(first, *others))

    TraceScoring.outcomes = outcomes


for each in (msgspec.msgpack, msgspec.json):
    each.Encoder = type("Encoder", (Wrapped,), {{"made_by": each.Encoder, "module": each}})
    each.Decoder = type("Decoder", (Wrapped,), {{"made_by": each.Decoder, "module": each}})
atexit.register(write)
if "collector.reading.worker" in sys.orig_argv:
    say_a_word()
'''


def request_of_one_trace() -> bytes:
    """Two model calls with a tool call between them; the word is in the first answer."""
    spans = [SpanSpec(id=1, attributes={"gen_ai.operation.name": "invoke_agent"}, end=9)]
    for number, text in enumerate((f"{TRACE_WORD} {ENOUGH}", "done")):
        answer = [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]
        chat = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.output.messages": json.dumps(answer),
        }
        spans.append(SpanSpec(id=2 + number, parent=1, attributes=chat, start=number))
    return request(*spans)


def passes() -> Counter[tuple[str, str, str]]:
    """(trace or outcomes, encode or decode, where) -> calls."""
    with tempfile.TemporaryDirectory(prefix="spanwise-passes-") as made:
        folder = Path(made)
        installed = folder / "installed"
        installed.mkdir()
        (installed / "sitecustomize.py").write_text(_SPY)
        found = folder / "found"
        found.mkdir()
        environment = {"PYTHONPATH": str(installed), "SPANWISE_TEST_PASSES": str(found)}
        settings = ("windows.trace.root_grace=100ms", "embedder.kind=none")
        with Service(folder / "data", *settings, environment=environment) as service:
            send(service.grpc, request_of_one_trace())
            service.wait_for("its signals", lambda: OUTCOME_WORD in str([*service.signals()]))
            service.wait_for("the index", lambda: _listed(service))
        return Counter(
            (kind, what, where)
            for file in found.iterdir()
            for kind, what, where in json.loads(file.read_text())
        )


def _listed(service: Service) -> bool:
    return bool(service.get("/api/v1/sessions"))


if __name__ == "__main__":
    counted = passes()
    for (kind, what, where), calls in sorted(counted.items()):
        print(f"{calls:3} {kind:8} {what} {where}")
    print(f"{counted.total():3} passes")
