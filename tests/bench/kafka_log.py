"""Kafka as the log against the disk log, interleaved on one machine.

python -m tests.bench.kafka_log BOOTSTRAP [--passes N] [--rounds N]

Receiver: CPU per million spans against a transport-only server. Assembly and scoring: spans a second from a log that
was filled before, by one process from disk, by one from Kafka and by three from Kafka.
"""

import argparse
import contextlib
import shutil
import statistics
import tempfile
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.bench.measure import (
    CACHE,
    MEMORY_SHARE,
    TRACES,
    load_file,
    run_transport,
    send,
    spans_in,
    tree_seconds,
)
from tests.support.service import Service

PAGE = frozenset({"page"})
COMMON = ("windows.trace.root_grace=1s", MEMORY_SHARE, "sinks.jsonl=null")


def on_kafka(bootstrap: str) -> tuple[str, ...]:
    """Settings of a log with topics of its own."""
    name = uuid.uuid4().hex[:8]
    return (
        "log.kind=kafka",
        f"log.kafka.bootstrap_servers={bootstrap}",
        f"log.kafka.topic_prefix={name}.",
        f"log.kafka.group={name}",
        "log.kafka.partitions=6",
        "log.kafka.session_timeout=6s",
    )


def receive(folder: Path, log: Sequence[str], file: Path, passes: int) -> float:
    """Fill the log; the receiver's CPU seconds per million spans."""
    with Service(folder, "roles=[receive]", *COMMON, *log) as it:
        send(it.grpc, file, "--requests", "20", base=9000)
        before = tree_seconds(it.pid)
        sent = send(it.grpc, file, passes=passes)
        time.sleep(0.5)
        return (tree_seconds(it.pid) - before) / sent["spans"] * 1e6


def work(
    folder: Path, log: Sequence[str], *, processes: int, traces: int, spans: int
) -> tuple[float, float]:
    """Assemble and score what stands in the log: spans a second, CPU seconds per million spans."""
    with contextlib.ExitStack() as running:
        services = [
            Service(
                folder if processes == 1 else folder.with_name(f"{folder.name}-{number}"),
                "roles=[assemble,score]",
                *COMMON,
                *log,
                workers=0,
                says=PAGE,
            )
            for number in range(processes)
        ]
        with ThreadPoolExecutor() as threads:
            for each in threads.map(Service.start, services):
                running.callback(each.stop)
        seen: list[tuple[float, float]] = []
        began = time.monotonic()
        # The first tenth is starting, the last tenth waits for the clock to close what came last.
        while (count := closed(services)) < 0.9 * traces and time.monotonic() - began < 240:
            if count > 0.1 * traces:
                seen.append((time.monotonic(), count))
            time.sleep(0.05)
        seen.append((time.monotonic(), count))
        share = (seen[-1][1] - seen[0][1]) / traces
        cpu = sum(tree_seconds(each.pid) for each in services)
        return spans * share / (seen[-1][0] - seen[0][0]), cpu / spans / 0.9 * 1e6


def closed(services: Sequence[Service]) -> float:
    """Traces closed by all of them."""
    return sum(each.total("spanwise_traces_closed_total") for each in services)


def main() -> None:
    """Print one line per measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    file = load_file(64)
    spans, traces = spans_in(file) * arguments.passes, TRACES * arguments.passes
    found: dict[str, list[float]] = {}
    for _ in range(arguments.rounds):
        folder = Path(tempfile.mkdtemp(prefix="spanwise-bench-", dir=CACHE))
        try:
            transport = run_transport(file, passes=arguments.passes).per_million
            found.setdefault("transport, CPU s/M", []).append(transport)
            for name, log, processes in (
                ("disk", (), 1),
                ("kafka", on_kafka(arguments.bootstrap), 1),
                ("kafka x3", on_kafka(arguments.bootstrap), 3),
            ):
                cpu = receive(folder / name, log, file, arguments.passes)
                rate, worked = work(
                    folder / name, log, processes=processes, traces=traces, spans=spans
                )
                found.setdefault(f"{name}, receiver CPU s/M", []).append(cpu)
                found.setdefault(f"{name}, assembly and scoring spans/s", []).append(rate)
                found.setdefault(f"{name}, assembly and scoring CPU s/M", []).append(worked)
        finally:
            shutil.rmtree(folder)
    for name, values in found.items():
        print(f"{name:<40} {statistics.median(values):10.1f}  {[round(v, 1) for v in values]}")


if __name__ == "__main__":
    main()
