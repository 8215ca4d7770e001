"""What costs CPU and memory and can be counted, which is the same on every machine: passes over a trace, imports."""

import pytest

from tests.bench.passes import MOST_PASSES, passes
from tests.bench.rest import heavy_imports

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def test_a_trace_and_its_outcomes_are_encoded_and_decoded_a_few_times() -> None:
    """Reached: a trace is packed, put into its record and looked through by the index; its outcomes go to the main
    process and into signals. Nobody unpacks the whole trace."""
    found = passes()

    assert found.total() <= MOST_PASSES, found
    assert {where for kind, what, where in found if (kind, what) == ("trace", "encode")} == {
        "records/trace_summary.py:packed_trace",
        "assembly/closing.py:records",
    }


def test_the_main_process_imports_no_heavy_library() -> None:
    assert heavy_imports() == []
