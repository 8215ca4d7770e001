"""One of each role in processes of its own, on a Kafka log, and the sessions to send it."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support import agents
from tests.support.sender import Sender
from tests.support.service import Service

SAYS = frozenset({"gRPC", "HTTP", "page"})
Scores = dict[tuple[str, ...], tuple[Any, ...]]
SETTINGS = (
    "windows.trace.root_grace=1s",
    "windows.trace.idle=5m",
    "embedder.kind=none",
    "sinks.jsonl.max_size=1GiB",
    "log.kind=kafka",
    "log.kafka.session_timeout=6s",
)


def turns(sessions: int, length: int) -> list[agents.Turn]:
    """Good and bad sessions of several services, turn by turn as they would happen."""
    return [
        agents.Turn(
            service=f"service-{number % 3}",
            session=f"session-{number}",
            number=turn,
            loops=number % 4 == 1,
            fails=number % 4 == 2,
        )
        for turn in range(length)
        for number in range(sessions)
    ]


class Fleet:
    """Processes on the same topics; every one is ended when the context is left."""

    def __init__(self, folder: Path, bootstrap: str, *, partitions: int = 6) -> None:
        self._folder = folder
        name = uuid.uuid4().hex[:8]
        self.prefix = f"{name}."
        self.settings = (
            *SETTINGS,
            f"log.kafka.bootstrap_servers={bootstrap}",
            f"log.kafka.topic_prefix={name}.",
            f"log.kafka.group={name}",
            f"log.kafka.partitions={partitions}",
        )
        self.services: list[Service] = []

    def add(self, name: str, *roles: str, settings: Sequence[str] = ()) -> Service:
        """Start one more process with these roles; its evaluators run inside it."""
        service = Service(
            self._folder / name,
            f"roles=[{','.join(roles)}]",
            *self.settings,
            *settings,
            workers=0,
            says=SAYS if "receive" in roles else frozenset({"page"}),
        )
        self.services.append(service)
        return service.start()

    def settle(
        self,
        publisher: Service,
        expected: Sequence[agents.Turn],
        workers: Sequence[Service],
        timeout: float = 120.0,
    ) -> None:
        """Wait until every trace is scored and delivered; what each process said and lags behind, if that fails."""
        try:
            publisher.wait_for(
                "every trace scored", lambda: settled(publisher, expected, workers), timeout
            )
        except AssertionError as error:
            raise AssertionError("\n".join((str(error), *map(_output_of, self.services)))) from None

    def __enter__(self) -> Fleet:
        """Nothing started yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """kill -9, whatever state they are in."""
        for service in self.services:
            if service.is_running:
                service.kill()


def _output_of(service: Service) -> str:
    """The end of its log and the lag of its groups."""
    try:
        lags = {k: v for k, v in service.metrics().items() if k.startswith("spanwise_log_lag")}
    except OSError as error:
        lags = {repr(error): 0.0}
    tail = service.output.read_text(errors="replace")[-8000:]
    return f"--- {service.data.name}, which lags {lags}:\n{tail}"


def latest(signals: list[dict[str, Any]]) -> dict[tuple[str, ...], dict[str, Any]]:
    """What a consumer holds after upserting, by (service, scope, subject, evaluator, method)."""
    newest: dict[tuple[str, ...], dict[str, Any]] = {}
    for signal in signals:
        subject = signal["trace_id"] if signal["scope"] == "trace" else signal["session_id"]
        key = (signal["service"], signal["scope"], subject, signal["evaluator"], signal["method"])
        if key not in newest or signal["revision"] >= newest[key]["revision"]:
            newest[key] = signal
    return newest


def scores(signals: list[dict[str, Any]]) -> Scores:
    """The part of it that may not depend on who scored when."""
    return {
        key: (signal["id"], signal["outcome"], signal["score"])
        for key, signal in latest(signals).items()
    }


def differing(lines: list[str]) -> int:
    """How many signal ids stand for more than one text."""
    by_id: dict[str, set[str]] = {}
    for line in lines:
        by_id.setdefault(json.loads(line)["id"], set()).add(line)
    return sum(len(each) > 1 for each in by_id.values())


def lag(services: Sequence[Service]) -> float:
    """Records that no group member has committed, all processes together."""
    return sum(service.total("spanwise_log_lag_records") for service in services)


def settled(
    publisher: Service, expected: Sequence[agents.Turn], workers: Sequence[Service]
) -> bool:
    """Whether every trace is scored and delivered, and every group has caught up."""
    if lag([publisher, *workers]) > 0:
        return False
    traces = {key[2] for key in latest(publisher.signals()) if key[1] == "trace"}
    return {agents.trace_id(turn).hex() for turn in expected} <= traces


def send(
    sent: Sequence[bytes], target: Callable[[], str], *, during: Callable[[], None], pause: float
) -> Sender:
    """Send everything while something happens; returns when all is acknowledged."""
    sender = Sender(sent, target, pause=pause)
    sender.start()
    try:
        during()
        sender.join(180)
        assert sender.acknowledged == len(sent), f"{sender.acknowledged} of {len(sent)}"
    finally:
        sender.give_up.set()
    return sender


def quiet(publisher: Service, *, seconds: float = 4.0, timeout: float = 60.0) -> None:
    """Wait until no signal has come for a while: the last session signals follow the last trace's."""
    deadline = time.monotonic() + timeout
    count, since = -1, time.monotonic()
    while time.monotonic() - since < seconds and time.monotonic() < deadline:
        now = len(publisher.signal_lines())
        if now != count:
            count, since = now, time.monotonic()
        time.sleep(0.2)
