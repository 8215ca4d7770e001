"""How soon the running service names what broke, and what it says until then: `python -m scripts.research.named`.

One service with the default configuration and a webhook. Every kind of fault that pages is a service of its own: 40
good sessions, then a release of which three in four sessions fail, one every two seconds. Beside them: a LangGraph-like
release after which traffic pauses, 400 ordinary sessions of which a fifth fails, and eleven spellings of cancelling.
Each second gauges, page, comparison and notices are read back.
"""

import json
import random
import re
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from secrets import token_bytes
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.support.sender import send
from tests.support.service import Service

AGENT = "clerk"
PAST = 40
NOTHING: Mapping[str, Any] = {}
RELEASE = 45
"""Sessions of the bad release: 90 seconds."""
EVERY = 2.0  # seconds between two sessions
FALSE = re.compile(
    r"cause unknown|cause is unknown|nothing fails more|no tool, model call or loop fails"
)
CANCELLED = (
    {"error.type": "asyncio.CancelledError"},
    {"error.type": "GeneratorExit"},
    {"error.type": "KeyboardInterrupt"},
    {"error.type": "AbortError"},
    {"error.type": "context.Canceled"},
    {"error.type": "System.OperationCanceledException"},
    {"error.type": "kotlinx.coroutines.CancellationException"},
    {"error.type": "client_disconnect"},
    {"rpc.grpc.status_code": "1"},
    {"http.response.status_code": "499"},
    {"strands.cancellation.type": "user"},
)


@dataclass
class Session:
    """One session of one turn: the tools that it calls, each with what comes of it, and what else goes wrong."""

    service: str
    number: int
    version: str = "1"
    tools: Mapping[str, str] = field(default_factory=lambda: {"find_order": "ok"})
    model_fails: bool = False
    cancelled: Mapping[str, str] | None = None

    def request(self) -> bytes:
        made = ExportTraceServiceRequest()
        resource = made.resource_spans.add()
        for key, value in {"service.name": self.service, "service.version": self.version}.items():
            resource.resource.attributes.add(key=key).value.string_value = value
        resource.scope_spans.add().spans.extend(self.spans())
        return made.SerializeToString()

    def spans(self) -> Iterator[Span]:
        trace, root = token_bytes(16), token_bytes(8)
        now = time.time_ns()

        def span(name: str, own: bytes, parent: bytes, at: int, **attributes: str) -> Span:
            begun = now - 10**9 + at * 10**7
            made = Span(trace_id=trace, span_id=own, parent_span_id=parent, name=name)
            made.start_time_unix_nano, made.end_time_unix_nano = begun, begun + 10**7
            for key, value in {"session.id": f"{self.service}-{self.number}", **attributes}.items():
                made.attributes.add(key=key.replace("__", ".")).value.string_value = value
            return made

        def chat(at: int, *parts: Mapping[str, Any]) -> Span:
            question = [{"type": "text", "content": f"Where is order {self.number}?"}]
            return span(
                "chat gpt-4o-mini",
                token_bytes(8),
                root,
                at,
                gen_ai__operation__name="chat",
                gen_ai__request__model="gpt-4o-mini",
                gen_ai__input__messages=json.dumps([{"role": "user", "parts": question}]),
                gen_ai__output__messages=json.dumps([{"role": "assistant", "parts": parts}]),
            )

        at = 0
        for tool, what in self.tools.items():
            for _ in range(3 if what == "again" else 1):
                at += 2
                asked = {"order": str(self.number)}
                calls = {"type": "tool_call", "id": f"c{at}", "name": tool, "arguments": asked}
                yield chat(at, calls)
                result = {"failed": "", "empty": "[]"}.get(what, json.dumps({"state": "shipped"}))
                used = span(
                    f"execute_tool {tool}",
                    token_bytes(8),
                    root,
                    at + 1,
                    gen_ai__operation__name="execute_tool",
                    gen_ai__tool__name=tool,
                    gen_ai__tool__call__id=f"c{at}",
                    gen_ai__tool__call__arguments=json.dumps(asked),
                    gen_ai__tool__call__result=result,
                )
                if what == "failed":
                    used.status.code = Status.STATUS_CODE_ERROR
                    used.attributes.add(key="error.type").value.string_value = "TimeoutError"
                yield used
        last = chat(at + 2, {"type": "text", "content": f"Order {self.number} has shipped."})
        if self.model_fails:
            last.status.code = Status.STATUS_CODE_ERROR
            last.attributes.add(key="error.type").value.string_value = "RateLimitError"
        yield last
        whole = span(
            "invoke_agent clerk",
            root,
            b"",
            0,
            gen_ai__operation__name="invoke_agent",
            gen_ai__agent__name=AGENT,
        )
        whole.end_time_unix_nano = now
        if self.cancelled is not None:
            whole.status.code = Status.STATUS_CODE_ERROR
            for key, value in self.cancelled.items():
                whole.attributes.add(key=key).value.string_value = value
        yield whole


GOOD: Mapping[str, Mapping[str, Any]] = {
    "server_failed": {"tools": {"mcp__maps__route": "ok", "mcp__maps__place": "ok"}},
}
BAD: Mapping[str, Mapping[str, Any]] = {
    "tool_failed": {"tools": {"find_order": "failed"}},
    "tool_empty": {"tools": {"find_order": "empty"}},
    "repeated_calls": {"tools": {"find_order": "again"}},
    "model_failed": {"model_fails": True},
    "server_failed": {"tools": {"mcp__maps__route": "failed", "mcp__maps__place": "failed"}},
}
"""By the fault that is to be named."""


class Hook(ThreadingHTTPServer):
    """Takes notices."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Takes)
        self.taken: list[tuple[float, dict[str, Any]]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class _Takes(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if isinstance(self.server, Hook):
            self.server.taken.append((time.monotonic(), json.loads(body)))
        self.send_response(202)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base
        pass


class Story(threading.Thread):
    """Sends the sessions of one service, and remembers when the first failing one was sent."""

    def __init__(self, grpc: str, name: str, steps: Iterator[tuple[Session, bool, float]]) -> None:
        super().__init__(daemon=True)
        self.service, self.began, self.began_at = name, None, 0.0
        self.sent = self.failing = 0
        self._grpc, self._steps = grpc, steps

    def run(self) -> None:
        for session, fails, pause in self._steps:
            if fails and self.began is None:
                self.began, self.began_at = time.monotonic(), time.time()  # noqa: TID251 - log time is the machine's
            send(self._grpc, session.request())
            self.sent += 1
            self.failing += fails
            time.sleep(pause)


def release(kind: str, *, sessions: int = RELEASE) -> Iterator[tuple[Session, bool, float]]:
    for number in range(PAST):
        yield Session(kind, number, **GOOD.get(kind, {})), False, 0.1
    time.sleep(8)
    for number in range(sessions):
        fails = number % 4 != 3
        bad = BAD[kind] if fails else GOOD.get(kind, {})
        yield Session(kind, PAST + number, version="2", **bad), fails, EVERY


def paused() -> Iterator[tuple[Session, bool, float]]:
    """60 sessions within 2:10 of which 30 fail, then nothing."""
    for number in range(PAST):
        yield Session("paused", number), False, 0.1
    time.sleep(8)
    for number in range(60):
        bad = BAD["tool_failed"] if number % 2 == 0 else NOTHING
        yield Session("paused", PAST + number, version="2", **bad), number % 2 == 0, 130 / 60


def ordinary() -> Iterator[tuple[Session, bool, float]]:
    rng = random.Random(400)  # noqa: S311 - the same run every time
    for number in range(400):
        bad = BAD["tool_failed"] if rng.random() < 0.2 else NOTHING
        yield Session("ordinary", number, **bad), bool(bad), 0.35


def stopped() -> Iterator[tuple[Session, bool, float]]:
    """300 sessions of which a fifth is stopped, in eleven spellings in turn, then 300 of which two fifths are."""
    rng = random.Random(300)  # noqa: S311 - the same run every time
    stops = {*rng.sample(range(300), 60), *rng.sample(range(300, 600), 120)}
    for number in range(600):
        spelt = CANCELLED[number % len(CANCELLED)] if number in stops else None
        yield Session("stopped", number, cancelled=spelt), number == 300, 0.25


@dataclass
class Seen:
    """When each place named the fault, in seconds since its first session was sent, and what was false before."""

    places: dict[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])
    false: list[str] = field(default_factory=list[str])
    since: float = 0.0
    numbers: tuple[int, ...] = ()
    sessions: tuple[str, ...] = ()


class Watcher:
    def __init__(self, service: Service, hook: Hook, stories: list[Story]) -> None:
        self.service, self.hook, self.stories = service, hook, stories
        self.seen = {each.service: Seen() for each in stories}

    def look(self) -> None:
        metrics, agents = self.service.metrics(), self.service.get("/api/v1/agents")["items"]
        for story in self.stories:
            name, seen = story.service, self.seen[story.service]
            mine = [each for each in agents if each["service"] == name]
            faults = [fault for each in mine[:1] for fault in each["faults"]]
            gauges = [
                key
                for key, value in metrics.items()
                if value
                and key.startswith("spanwise_fault_detected")
                and f'service="{name}"' in key
            ]
            self._note(story, "gauge", gauges)
            raised = [
                key
                for key, value in metrics.items()
                if value
                and f'service="{name}"' in key
                and key.startswith(("spanwise_fault_detected", "spanwise_drift_detected"))
            ]
            if raised and story.began is None:
                seen.false.append(f"raised before: {raised}")
            if raised and name == "ordinary":
                seen.false.append(f"raised: {raised}")
            if faults:
                (first, *_) = faults
                seen.since = _unix(first["since"])
                counts = ("failures", "uses", "failures_before", "uses_before")
                seen.numbers = tuple(first[each] for each in counts)
                self._note(story, "api", [each["fault"] for each in faults])
            if story.began is None:
                continue
            page = self._page(f"/agent?service={name}&agent={AGENT}")
            self._note(story, "page", re.findall(r'(?s)aria-label="What fails">.*?</ul>', page))
            self._note(story, "verdict", self._verdict(name))
            unknown = [
                key
                for key, value in metrics.items()
                if value
                and key.startswith("spanwise_drift_cause")
                and f'service="{name}"' in key
                and 'fault="unknown"' in key
            ]
            for place, text in (("page", page), ("gauge", " ".join(unknown))):
                if FALSE.search(text) or unknown:
                    seen.false.append(f"{time.monotonic() - story.began:.0f} s {place}")
        self._read_notices()

    def _read_notices(self) -> None:
        for at, body in self.hook.taken:
            data = body["data"]
            story = next(
                (each for each in self.stories if each.service == data["labels"].get("service")),
                None,
            )
            if story is None or story.began is None:
                continue
            seen = self.seen[story.service]
            texts = json.dumps(data["annotations"])
            if FALSE.search(texts):
                seen.false.append(f"{at - story.began:.0f} s notice")
            if data["labels"]["alertname"] == "AgentFault" and "notice" not in seen.places:
                seen.places["notice"] = (at - story.began, -1)
                seen.sessions = tuple(data["sessions"])

    def _note(self, story: Story, place: str, found: list[str]) -> None:
        wanted = story.service if story.service in BAD else ""
        seen = self.seen[story.service]
        if found and place not in seen.places and story.began is not None:
            seen.places[place] = (time.monotonic() - story.began, story.failing)
            if wanted and place in ("gauge", "api") and not any(wanted in each for each in found):
                seen.false.append(f"{place} names {found}")

    def _verdict(self, name: str) -> list[str]:
        with suppress(urllib.error.HTTPError):
            found = self.service.get(f"/api/v1/compare?service={name}&candidate=2")
            if found["verdict"] == "fail":
                return [found["reason"] or "ranks"]
        return []

    def _page(self, path: str) -> str:
        with (
            suppress(urllib.error.HTTPError),
            urllib.request.urlopen(self.service.admin + path) as got,  # noqa: S310 - its own
        ):
            return got.read().decode()
        return ""


def _unix(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def rows(watcher: Watcher) -> Iterator[str]:
    yield "| case | gauge | page | notice | verdict | since the first failing session | counted | false sentences |"
    yield "|---|---|---|---|---|---|---|---|"
    for story in watcher.stories:
        seen = watcher.seen[story.service]

        def at(place: str, seen: Seen = seen) -> str:
            if place not in seen.places:
                return "none"
            seconds, failing = seen.places[place]
            return f"{seconds:.0f} s" + (f", {failing} failing" if failing >= 0 else "")

        since = f"{seen.since - story.began_at:+.1f} s" if seen.since else "none"
        cells = [at(each) for each in ("gauge", "page", "notice", "verdict")]
        yield f"| {story.service} | {' | '.join(cells)} | {since} | {seen.numbers} {seen.sessions} | {seen.false[:4]} |"


def main(arguments: list[str]) -> None:
    hook = Hook()
    steps: dict[str, Callable[[], Iterator[tuple[Session, bool, float]]]] = {
        **{kind: (lambda kind=kind: release(kind)) for kind in BAD},
        "paused": paused,
        "ordinary": ordinary,
        "stopped": stopped,
    }
    chosen = arguments or list(steps)
    with (
        tempfile.TemporaryDirectory() as folder,
        Service(Path(folder) / "data", f"notify.to.hook.webhook={hook.url}") as service,
    ):
        service.become_ready()
        stories = [Story(service.grpc, name, steps[name]()) for name in chosen]
        watcher = Watcher(service, hook, stories)
        for each in stories:
            each.start()
        while any(each.is_alive() for each in stories):
            watcher.look()
            time.sleep(1)
        for _ in range(20):
            watcher.look()
            time.sleep(1)
        for row in rows(watcher):
            sys.stdout.write(f"{row}\n")
        for _at, body in hook.taken:
            sys.stdout.write(json.dumps(body["data"]["annotations"]["description"]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
