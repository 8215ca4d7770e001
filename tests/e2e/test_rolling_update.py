"""The scaled form on a real broker, its pods replaced under load: nothing is refused, lost or changed."""

import asyncio
import itertools
import json
import socket
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import pytest

from tests.support import agents
from tests.support.command import evaluated
from tests.support.fleet import Fleet, Scores, differing, lag, scores, turns
from tests.support.gate import pass_on
from tests.support.kafka.topics import read_topic
from tests.support.recordings import write
from tests.support.sdk_sender import SdkSender, ShortLivedSenders
from tests.support.service import Service

PERIOD = 0.2
"""Seconds between two looks at `/readyz`: how late the address learns of a stop."""


class Balancer:
    """Takes connections for a set of processes, new ones only to those whose `/readyz` was 200 at the last look.

    A connection stays with its process until one side closes it. Never asks whether a port is open before it connects.
    """

    def __init__(self) -> None:
        self.members: list[Service] = []
        """Those that exist; they may be stopping."""
        self.failed: list[str] = []
        """Connections that found no open port, and those that came while no member was ready."""
        self._ready: list[Service] = []
        self._turn = itertools.count()
        self._over = threading.Event()
        self._listeners: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._look, daemon=True)]
        self.grpc = self._listen(lambda service: service.grpc)
        self.http = self._listen(lambda service: urlsplit(service.http).netloc)

    def __enter__(self) -> Self:
        """Serve."""
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the address."""
        self._over.set()
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def await_ready(self, count: int, timeout: float = 60.0) -> None:
        """Return when so many members are ready."""
        deadline = time.monotonic() + timeout
        while len(self._ready) < count:
            assert time.monotonic() < deadline, f"{len(self._ready)} of {count} are ready"
            time.sleep(0.05)

    def _look(self) -> None:
        while not self._over.wait(PERIOD):
            self._ready = [each for each in tuple(self.members) if _is_ready(each)]

    def _listen(self, target: Callable[[Service], str]) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        self._listeners.append(listener)
        self._threads.append(
            threading.Thread(target=self._accept, args=(listener, target), daemon=True)
        )
        return f"127.0.0.1:{listener.getsockname()[1]}"

    def _accept(self, listener: socket.socket, target: Callable[[Service], str]) -> None:
        while not self._over.is_set():
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client, target), daemon=True).start()

    def _serve(self, client: socket.socket, target: Callable[[Service], str]) -> None:
        with client:
            ready = self._ready
            if not ready:
                self.failed.append("no member was ready")
                return
            chosen = ready[next(self._turn) % len(ready)]
            host, _, port = target(chosen).rpartition(":")
            try:
                server = socket.create_connection((host, int(port)), timeout=10)
            except OSError as error:
                self.failed.append(f"{chosen.data.name}: {error}")
                return
            with server:
                pass_on(client, server)


def _is_ready(service: Service) -> bool:
    try:
        return service.status("/readyz") == 200
    except OSError:
        return False


pytestmark = [pytest.mark.e2e, pytest.mark.kafka]

REPLICAS = {"receive": 2, "assemble": 2, "score": 2, "publish": 1}
GRACE = 45.0
"""Seconds that a pod gets after the delay of its stop."""
STOP = "receiver.stop_delay=3s"
HEADLINES = {"agent_reliability", "agent_consistency"}


class Pods:
    """What the Deployments of the scaled form run; the receivers stand behind a Service."""

    def __init__(self, fleet: Fleet, service: Balancer) -> None:
        self._fleet = fleet
        self._service = service
        self._numbers = itertools.count(1)
        self.running: dict[str, list[Service]] = {role: [] for role in REPLICAS}
        self.publishers: list[Service] = []
        """Every one that ever ran."""
        self.longest_stop = 0.0

    def start_all(self) -> None:
        """All pods at once, as after an installation: the topics are not there yet."""
        with ThreadPoolExecutor(len(REPLICAS) * 2) as pool:
            wanted = [role for role, count in REPLICAS.items() for _ in range(count)]
            list(pool.map(self._start, wanted))
        self._service.await_ready(REPLICAS["receive"])

    def update_all(self) -> None:
        """As `helm upgrade` does: every Deployment replaces its pods, all Deployments at once."""
        with ThreadPoolExecutor(len(REPLICAS)) as pool:
            list(pool.map(self._update, REPLICAS))

    def kill(self, role: str) -> None:
        """The first pod of the role is gone without a word, and another one is started in its place."""
        self.running[role].pop(0).kill()
        self._start(role)

    def _start(self, role: str) -> None:
        name = f"{role}-{next(self._numbers)}"
        pod = self._fleet.add(name, role, settings=[STOP]).become_ready()
        self.running[role].append(pod)
        if role == "receive":
            self._service.members.append(pod)
        if role == "publish":
            self.publishers.append(pod)

    def _update(self, role: str) -> None:
        """A new pod is ready before an old one is asked to stop; `publish` may never run twice: it stops first."""
        for old in tuple(self.running[role]):
            if role != "publish":
                self._start(role)
            self._stop(role, old)
            if role == "publish":
                self._start(role)

    def _stop(self, role: str, old: Service) -> None:
        began = time.monotonic()
        assert old.stop(GRACE) == 0
        self.longest_stop = max(self.longest_stop, time.monotonic() - began)
        self.running[role].remove(old)

    def signal_lines(self) -> list[str]:
        """What the publishers wrote, in order."""
        return [line for each in self.publishers for line in each.signal_lines()]

    def lag(self) -> float:
        """Records that wait, in all groups."""
        return lag([each for pods in self.running.values() for each in pods])


@contextmanager
def load(
    sent: Sequence[bytes], service: Balancer, *, lasting: float
) -> Generator[Callable[[], None]]:
    """Agents that send steadily, those of one service with one exporter; without pauses once the block calls its value.

    `lasting`: seconds that the requests would last, longer than what happens until then on a busy machine.
    Every request must have been taken, and no connection of any agent may have found a closed port.
    """
    parts = {True: list[bytes](), False: list[bytes]()}
    for each in sent:
        parts[b"service-1" in each].append(each)
    senders = [
        SdkSender(parts[False], "grpc", service.grpc, pause=lasting / len(parts[False])),
        SdkSender(parts[True], "http", service.http, pause=lasting / len(parts[True])),
    ]
    passers = ShortLivedSenders(service.http)
    for each in (*senders, passers):
        each.start()

    def burst() -> None:
        assert all(each.is_alive() for each in senders), f"it took longer than {lasting:g} s"
        for each in senders:
            each.hurry.set()

    try:
        yield burst
        for each in senders:
            each.join(60)
    finally:
        passers.over.set()
        for each in senders:
            each.give_up.set()
            each.hurry.set()
    longest = max(each.longest for each in senders)
    print(f"longest export={longest:.1f} s short-lived={passers.served}")
    assert [each.lost for each in senders] == [[], []]
    assert sum(len(each.acknowledged) for each in senders) == len(sent)
    assert service.failed == []
    assert passers.unserved == []


def offline(folder: Path, sent: Sequence[bytes]) -> Scores:
    """The scores that these requests have, whoever computes them."""
    folder.mkdir()
    recording = folder / "sent.otlp"
    write(recording, sent)
    return scores(evaluated(str(recording), "--set", "embedder.kind=none"))


def comparable(found: Scores) -> dict[tuple[str, ...], Any]:
    """Signals of traces whole; of sessions the headlines' scores, because they are still open in one of the two."""
    return {
        key: value if key[1] == "trace" else value[1:]
        for key, value in found.items()
        if key[1] == "trace" or key[3] in HEADLINES
    }


def check(pods: Pods, whole: Scores, topic: str, bootstrap: str) -> None:
    """The public topic and the sink hold every signal, once by id, with the scores of an undisturbed run."""
    expected = comparable(whole)

    def found() -> dict[tuple[str, ...], Any]:
        signals = [json.loads(line) for line in pods.signal_lines()]
        return {k: v for k, v in comparable(scores(signals)).items() if k in expected}

    (publisher,) = pods.running["publish"]
    arrived = publisher.come_to(expected, found, 90)
    publisher.come_to(0.0, pods.lag)
    lines = pods.signal_lines()
    public = [
        each.value.decode() for each in asyncio.run(read_topic(bootstrap, topic)) if each.value
    ]
    print(
        f"signals={len(lines)} repeats={len(lines) - len(set(lines))} differing={differing(lines)} "
        f"public={len(public)} longest stop={pods.longest_stop:.1f} s"
    )
    assert arrived == expected
    assert differing(lines) == 0
    assert differing(public) == 0
    assert {json.loads(each)["id"] for each in public} == {json.loads(each)["id"] for each in lines}
    final = [each for each in map(json.loads, set(lines)) if each["final"] and each["trace_id"]]
    assert len(final) == len({(each["trace_id"], each["evaluator"], each["id"]) for each in final})


def updated(
    folder: Path, bootstrap: str, *, kills: Sequence[str], rounds: int, length: int, lasting: float
) -> None:
    """In each round the pods of all roles are replaced, then one of each role in `kills` dies."""
    sent = list(agents.requests(turns(sessions=12, length=length)))
    whole = offline(folder / "offline", sent)
    with Fleet(folder / "fleet", bootstrap) as fleet, Balancer() as service:
        pods = Pods(fleet, service)
        pods.start_all()

        with load(sent, service, lasting=lasting) as burst:
            for number in range(1, rounds + 1):
                pods.update_all()
                if number == rounds:
                    burst()
                    time.sleep(1.5)  # the first of it has reached scoring
                for role in kills:
                    pods.kill(role)
                print(f"round {number} of {rounds}")

        check(pods, whole, f"{fleet.prefix}signals", bootstrap)
        assert pods.longest_stop < GRACE / 2


@pytest.mark.timeout(400)
def test_an_update_and_a_kill_under_load_refuse_lose_and_change_nothing(
    tmp_path: Path, kafka: str
) -> None:
    updated(tmp_path, kafka, kills=("score",), rounds=1, length=14, lasting=150.0)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_updates_and_kills_for_minutes_refuse_lose_and_change_nothing(
    tmp_path: Path, kafka: str
) -> None:
    kills = ("score", "assemble", "publish")
    updated(tmp_path, kafka, kills=kills, rounds=6, length=50, lasting=900.0)
