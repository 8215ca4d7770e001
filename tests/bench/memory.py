"""What the processes hold at rest, after load and under lasting load; and which libraries the main one never imports.

Measured is RssAnon, what the system cannot take back.
"""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from collector.base.heap import QUIET
from tests.bench.measure import (
    MEMORY_SHARE,
    anonymous_bytes,
    load_file,
    send,
    served,
    settled,
    spans_in,
)
from tests.support.agents import request
from tests.support.asking import span
from tests.support.sender import EXPORT
from tests.support.service import ROOT, Service, children

SETTINGS = (MEMORY_SHARE, "windows.trace.root_grace=1s")
SESSIONS, SENDERS = 30, 6
HEAVY = ("aiokafka", "litellm", "numpy", "scipy", "sklearn", "wordllama")
_IMPORTED = """
import json, sys
from collector.service.app import App
from collector.commands.run import run
from collector.config.tree import Config
App(Config())
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def rest_megabytes() -> float:
    """RssAnon of the main process of a service with every default, in MiB, some seconds after its start."""
    with served() as it:
        time.sleep(2)
        maps = Path(f"/proc/{it.pid}/maps").read_text()
        assert not [name for name in HEAVY if f"/{name}" in maps]
        return anonymous_bytes(it.pid) / (1 << 20)


def all_megabytes(service: Service) -> float:
    """RssAnon of all processes of a service, in MiB."""
    every = (service.pid, *children(service.pid))
    return sum(anonymous_bytes(each) for each in every) / (1 << 20)


def idle_megabytes() -> float:
    """RssAnon of all processes some seconds after 30,000 spans, as fast as they go, when every session has closed."""
    file = load_file(64)
    with served(*SETTINGS, "windows.session.idle=5s") as it:
        it.become_ready()
        send(it.grpc, file, passes=5)
        settled(it)

        def has_closed() -> bool:
            found = it.metrics()
            return not found["spanwise_traces_active"] + found["spanwise_sessions_active"]

        it.wait_for("all sessions are closed", has_closed)
        time.sleep(2 * QUIET)
        return all_megabytes(it)


def minutes_megabytes(minutes: int, *, rate: int) -> list[float]:
    """RssAnon of all processes at the end of each minute of a load of so many spans per second.

    Sessions close after a minute of silence, so that as many are open in the last minute as in the third.
    """
    file = load_file(64)
    passes = max(1, round(60 * rate / spans_in(file)))
    with served(*SETTINGS, "windows.session.idle=1m") as it:
        it.become_ready()
        found: list[float] = []
        for minute in range(minutes):
            base = 1 + minute * passes
            send(it.grpc, file, "--rate", str(rate), passes=passes, base=base)
            found.append(all_megabytes(it))
        return found


def endless_megabytes(minutes: int, *settings: str) -> list[float]:
    """RssAnon of the main process at the end of each minute of 300 spans a second in 30 sessions that never close."""
    text = "word " * 120
    with (
        served("embedder.kind=none", "windows.trace.root_grace=1s", *settings) as it,
        grpc.insecure_channel(it.grpc) as channel,
        ThreadPoolExecutor(SENDERS) as pool,
    ):
        call = channel.unary_unary(EXPORT, request_serializer=bytes, response_deserializer=bytes)
        began = time.monotonic()

        def send_turns(sender: int) -> None:
            """One turn of ten spans a second for each of its sessions."""
            for number in range(60 * minutes):
                for session in range(sender, SESSIONS, SENDERS):
                    name, said = f"s{session}", f"{number} {text}"
                    spans = [span(name, said, said, number=number)]
                    spans += [span(name, "", number=number, child=f"tool{n}") for n in range(9)]
                    call(request("desk-bot", spans), timeout=60)
                time.sleep(max(0.0, began + number + 1 - time.monotonic()))

        sending = [pool.submit(send_turns, each) for each in range(SENDERS)]
        found: list[float] = []
        for minute in range(1, minutes + 1):
            time.sleep(max(0.0, began + 60 * minute - time.monotonic()))
            found.append(anonymous_bytes(it.pid) / (1 << 20))
        for each in sending:
            each.result()
        return found


def heavy_imports() -> list[str]:
    """Which of the heavy libraries a main process with every default has imported."""
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return sorted(set(json.loads(done.stdout)) & set(HEAVY))
