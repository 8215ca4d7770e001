"""An index without room evicts the oldest sessions with the words by which they are searched."""

import random
from pathlib import Path

from collector.api.families import ApiFamilies
from collector.api.index import Index
from collector.base.telemetry import Telemetry
from tests.support import api_records as make

COUNT = 3_000


def filled(index: Index) -> None:
    draw = random.Random(7)
    for first in range(0, COUNT, 200):
        traces = [
            make.trace(
                number + 1,
                session_id=f"s-{number}",
                input=" ".join(f"{draw.getrandbits(30):x}" for _ in range(60)),
                output=" ".join(f"{draw.getrandbits(12):x}" for _ in range(60)),
            )
            for number in range(first, first + 200)
        ]
        values = [make.trace_value(each) for each in traces]
        index.take_traces(make.trace_records(*values, first=first))


def test_a_full_index_evicts_and_never_starts_empty(tmp_path: Path) -> None:
    """Words that no two traces share: what is evicted takes the most room in the search."""
    telemetry = Telemetry()
    index = Index(
        tmp_path, size=4 << 20, max_traces=10, content=True, families=ApiFamilies(telemetry)
    )
    filled(index)
    with index.reading() as reading:
        execute = reading.connection.execute
        kept = {row for (row,) in execute("SELECT id FROM traces").fetchall()}
        found = {row for (row,) in execute("SELECT rowid FROM texts ('support OR 1*')").fetchall()}
    index.close()

    evicted = [
        telemetry.registry.get_sample_value(
            "spanwise_index_evicted_total", {"kind": kind, "reason": "index_full"}
        )
        for kind in ("index", "session")
    ]
    assert evicted == [None, COUNT - len(kept)]
    assert 500 < len(kept) < COUNT
    assert found
    assert found <= kept
