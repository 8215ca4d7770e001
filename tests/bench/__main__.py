"""`make bench`: every ratio to hold, each measured inside one run, interleaved with the transport.

    python -m tests.bench [--rounds 2] [--only path,latency,reading,memory,lists,overload]

The machine's load stands beside each figure: what other processes do adds more to a large process than to the small
transport. docs/cost.md says what the figures mean for the size of a machine.
"""

import argparse
import time

from tests.bench.goodput import goodput_ratio
from tests.bench.index_scale import MARK, SESSIONS, measured
from tests.bench.latency import ack_ratio
from tests.bench.memory import heavy_imports, idle_megabytes, rest_megabytes
from tests.bench.passes import MOST_PASSES, passes
from tests.bench.ratios import DURABLE, EVERYTHING, OTHER_LOADS, SHARES, Measured, interleaved
from tests.bench.signal_path import MARK as SIGNAL_MARK
from tests.bench.signal_path import measure, signal_ratio
from tests.bench.table import at_least, at_most, heading, row
from tests.bench.test_assembly_memory import memory_ratio
from tests.bench.test_read_trace_bench import reading_ratio
from tests.bench.test_session_memory_bench import session_bytes
from tests.bench.test_session_update import update_ratio


def show(each: Measured) -> None:
    """The ratios of one stage."""
    stage = each.stage
    what = f"{stage.label} / transport ({each.cost:.1f} us a span)"
    at_most(what, each.ratio, stage.mark)
    if stage.main is not None:
        at_most(f"{stage.label}: main process / transport", each.main, stage.main)
    if stage.written is not None:
        at_most(f"{stage.label}: bytes written / received", each.written, stage.written)


def path(rounds: int) -> None:
    """The data path as a whole: CPU of all processes, of the main process, and bytes written."""
    heading("CPU of the process tree per span, bytes on disk")
    for each in interleaved((*DURABLE, *SHARES, *EVERYTHING, *OTHER_LOADS), rounds):
        show(each)


def latency(rounds: int) -> None:
    """How long senders wait while the workers are busy."""
    heading("Acknowledgements")
    rate = 2000.0
    what = f"ack p99, everything busy / receive only, {rate:.0f} spans/s"
    at_most(what, ack_ratio(repeats=1 + rounds, rate=rate), 3.0)


def reading(_rounds: int) -> None:
    """What single steps cost beside the least that they could."""
    heading("Single steps, CPU in one process")
    at_most("read_trace / protobuf parse, ids match", reading_ratio(matching=True), 7)
    at_most("read_trace / protobuf parse, ids differ", reading_ratio(matching=False), 7)
    at_most("encode + decode passes of a trace and its outcomes", passes().total(), MOST_PASSES)
    at_most("a signal to three sinks / its encoding", signal_ratio(measure()), SIGNAL_MARK)
    at_most("session update, 1000 traces / 10 traces", update_ratio(), 2.0)


def memory(_rounds: int) -> None:
    """What the service holds."""
    heading("Memory")
    at_most("main process at rest", rest_megabytes(), 64, " MiB")
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
    at_least(f"scored at twice the load / at saturation, {rate:.0f} spans/s", ratio, 0.7)


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
