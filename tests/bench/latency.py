"""How long a sender waits for its answer while the workers are busy, beside a service that evaluates nothing."""

from statistics import median

from tests.bench.measure import MEMORY_SHARE, load_file, send, served, settled

FLOOD = 3
"""Passes sent at once, so that the workers have seconds of work when the measurement begins."""
SECONDS = 2.5
SETTINGS = (MEMORY_SHARE, "windows.trace.root_grace=0.2s")


def ack_ratio(*, repeats: int, rate: float) -> float:
    """p99 with busy workers / with evaluation off, the median of interleaved repeats; `rate` in spans a second."""
    file = load_file(64)
    count = str(int(rate * SECONDS / 64))
    paced = ("--requests", count, "--rate", str(rate))
    ratios: list[float] = []
    with served(*SETTINGS, "roles=[receive]") as quiet, served(*SETTINGS) as busy:
        for repeat in range(repeats):
            base = 100 * (repeat + 1)
            idle = send(quiet.grpc, file, *paced, passes=9, base=base)
            send(busy.grpc, file, passes=FLOOD, base=base + 20)
            loaded = send(busy.grpc, file, *paced, passes=9, base=base + 40)
            settled(busy)
            ratios.append(loaded["p99_ms"] / idle["p99_ms"])
    return median(ratios)
