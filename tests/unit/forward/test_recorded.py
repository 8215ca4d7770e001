"""What the rules would keep of recordings, before anyone pays for it."""

from typing import Any

from collector.config.forward import Keep
from collector.forward.recorded import Amount, KeptOfRecordings
from collector.log.port import TRACES, Position, Record
from tests.support.api_records import trace, trace_value


def record(number: int, session: str, **fields: Any) -> Record:
    value = trace_value(trace(number, session_id=session, **fields))
    return Record(position=Position(TRACES, 0, number), key=session.encode(), value=value, time=0.0)


def signal(scope: str, *, success: bool, number: int | None = None) -> dict[str, Any]:
    trace_id = None if number is None else f"{number:032x}"
    return {"scope": scope, "trace_id": trace_id, "success": success}


def test_every_trace_of_a_session_that_failed_is_kept_and_the_rest_by_share() -> None:
    it = KeptOfRecordings(Keep(share=0.0, slow=None, new_versions=0))
    it.add([signal("session", success=False)], [record(1, "a"), record(2, "a")])
    it.add([signal("trace", success=False, number=3)], [record(3, "b"), record(4, "b")])
    it.add([signal("session", success=True)], [record(5, "c"), record(6, "c", status="error")])

    found = it.by_reason({f"{number:032x}": 100 * number for number in range(7)})

    assert found == {
        "failed": Amount(traces=4, spans=8, size=100 * (1 + 2 + 3 + 6)),
        "dropped": Amount(traces=2, spans=4, size=100 * (4 + 5)),
        "all": Amount(traces=6, spans=12, size=100 * 21),
    }
    assert [each.trace.failed for each in it.decisions()] == [True] * 3 + [False, False, True]
