"""`make bench`: every ratio to hold, measured in one run of at most six minutes, interleaved with the transport.

python -m tests.bench [--rounds 2]
"""

from __future__ import annotations

import argparse
import time

from tests.bench.latency import ack_ratio
from tests.bench.memory import heavy_imports, rest_megabytes
from tests.bench.ratios import DURABLE, EVERYTHING, SHARES, Measured, interleaved
from tests.bench.test_assembly_memory import memory_ratio
from tests.bench.test_read_trace_bench import reading_ratio
from tests.bench.test_session_update import update_ratio


def row(what: str, measured: str, mark: str, *, held: bool | None) -> None:
    """Print one line of the table."""
    verdict = "" if held is None else "held" if held else "MISSED"
    print(f"{what:<46} {measured:>18}  {mark:>10}  {verdict}", flush=True)


def show(each: Measured) -> None:
    """A ratio against the transport."""
    mark = each.stage.mark
    row(
        f"{each.stage.label} / transport",
        f"{each.ratio:.2f} ({each.cost:.1f} us)",
        "" if mark is None else f"<= {mark:g}",
        held=None if mark is None else each.ratio <= mark,
    )


def number(what: str, value: float, mark: float, unit: str = "") -> None:
    """A figure with its mark."""
    row(what, f"{value:.2f}{unit}", f"<= {mark:g}{unit}", held=value <= mark)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2)
    rounds = parser.parse_args().rounds
    began = time.monotonic()
    row("what (CPU of the process tree per span)", "measured", "mark", held=None)
    found = list(interleaved((*DURABLE, *SHARES, *EVERYTHING), rounds))
    for each in found:
        show(each)
    rate = 0.5e6 / found[-2].cost
    number(
        f"ack p99, workers busy / no evaluation, {rate:.0f} spans/s",
        ack_ratio(repeats=3, rate=rate),
        3.0,
    )
    number("memory of the main process at rest", rest_megabytes(), 64, " MiB")
    heavy = heavy_imports()
    row("heavy libraries in the main process", ", ".join(heavy) or "none", "none", held=not heavy)
    number("memory per buffered span / its wire bytes", memory_ratio(), 1.1)
    number("read_trace / protobuf parse, ids match", reading_ratio(matching=True), 7)
    number("read_trace / protobuf parse, ids differ", reading_ratio(matching=False), 7)
    number("session update, 1000 traces / 10 traces", update_ratio(), 2.0)
    print(f"{time.monotonic() - began:.0f} s, the median of {rounds} rounds")


if __name__ == "__main__":
    main()
