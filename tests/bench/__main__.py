"""`make bench`: every ratio to hold, each measured inside one run, interleaved with the transport.

    python -m tests.bench [--rounds 2] [--only path,latency,reading,memory,lists,overload]

The machine's load stands beside each figure: what other processes do adds more to a large process than to the small
transport. docs/cost.md says what the figures mean for the size of a machine.
"""

import argparse
import statistics
import time

from tests.bench.goodput import goodput_ratio
from tests.bench.index_scale import MARK, SESSIONS, measured
from tests.bench.measure import (
    MEMORY_SHARE,
    at_most,
    heading,
    load_file,
    row,
    send,
    served,
    settled,
)
from tests.bench.passes import MOST_PASSES, passes
from tests.bench.ratios import DURABLE, EVERYTHING, OTHER_LOADS, SHARES, interleaved
from tests.bench.rest import heavy_imports, idle_megabytes, main_megabytes
from tests.bench.test_memory import memory_ratio, session_bytes
from tests.bench.test_reading_cost import reading_ratio
from tests.bench.test_scoring_cost import update_ratio


def path(rounds: int) -> None:
    """The data path as a whole: CPU of all processes, of the main process, and bytes written."""
    heading("CPU of the process tree per span, bytes on disk")
    for each in interleaved((*DURABLE, *SHARES, *EVERYTHING, *OTHER_LOADS), rounds):
        stage = each.stage
        what = f"{stage.label} / transport ({each.cost:.1f} us a span)"
        at_most(what, each.ratio, stage.mark)
        if stage.main is not None:
            at_most(f"{stage.label}: main process / transport", each.main, stage.main)
        if stage.written is not None:
            at_most(f"{stage.label}: bytes written / received", each.written, stage.written)


def latency(rounds: int) -> None:
    """How long senders wait while the workers are busy, beside a service that evaluates nothing."""
    heading("Acknowledgements")
    file, rate = load_file(64), 2000
    paced = ("--requests", str(rate * 5 // 2 // 64), "--rate", str(rate))  # for 2.5 seconds
    ratios: list[float] = []
    settings = (MEMORY_SHARE, "windows.trace.root_grace=0.2s")
    with served(*settings, "roles=[receive]") as quiet, served(*settings) as busy:
        for base in range(100, 100 * (rounds + 2), 100):
            idle = send(quiet.grpc, file, *paced, passes=9, base=base)
            send(busy.grpc, file, passes=3, base=base + 20)  # seconds of work for the workers
            loaded = send(busy.grpc, file, *paced, passes=9, base=base + 40)
            settled(busy)
            ratios.append(loaded["p99_ms"] / idle["p99_ms"])
    what = f"ack p99, everything busy / receive only, {rate} spans/s"
    at_most(what, statistics.median(ratios), 3.0)


def reading(_rounds: int) -> None:
    """What single steps cost beside the least that they could."""
    heading("Single steps, CPU in one process")
    at_most("read_trace / protobuf parse, ids match", reading_ratio(matching=True), 7)
    at_most("read_trace / protobuf parse, ids differ", reading_ratio(matching=False), 7)
    at_most("encode + decode passes of a trace and its outcomes", passes().total(), MOST_PASSES)
    at_most("session update, 1000 traces / 10 traces", update_ratio(), 2.0)


def memory(_rounds: int) -> None:
    """What the service holds."""
    heading("Memory")
    at_most("main process at rest", main_megabytes(), 64, " MiB")
    at_most("all processes, idle after 30,000 spans", idle_megabytes(), 200, " MiB")
    at_most("an open session that rests, one trace", session_bytes(1), 1500, " B")
    at_most("an open session that rests, five traces", session_bytes(5), 3000, " B")
    heavy = heavy_imports()
    row("heavy libraries in the main process", ", ".join(heavy) or "none", "none", held=not heavy)
    at_most("an open span / its wire bytes, log on disk", memory_ratio(by_ref=True), 0.1)
    at_most("an open span / its wire bytes, other logs", memory_ratio(), 1.1)


def lists(_rounds: int) -> None:
    """How long the list of sessions takes in a full index."""
    heading(f"Requests at {SESSIONS} sessions in the index, median")
    for what, median in measured():
        at_most(what, median, MARK, " ms")


def overload(_rounds: int) -> None:
    """What is scored while more is offered than can be."""
    heading("Overload")
    ratio, rate = goodput_ratio()
    what = f"scored at twice the load / at saturation, {rate:.0f} spans/s"
    row(what, f"{ratio:.2f}", ">= 0.7", held=ratio >= 0.7)


SECTIONS = {
    "path": path,
    "latency": latency,
    "reading": reading,
    "memory": memory,
    "lists": lists,
    "overload": overload,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default=",".join(SECTIONS))
    arguments = parser.parse_args()
    began = time.monotonic()
    for name in arguments.only.split(","):
        SECTIONS[name](arguments.rounds)
    print(f"\n{time.monotonic() - began:.0f} s, the median of {arguments.rounds} rounds")


if __name__ == "__main__":
    main()
