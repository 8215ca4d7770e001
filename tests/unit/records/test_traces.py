from collector.base.errors import Undecodable
from collector.log.port import TRACES, Position, Record
from collector.records.traces import TraceReader, previous_trace
from evaluators.matching.text import LIMIT


class Records:
    """Values by offset, and the positions that were fetched."""

    def __init__(self, **values: bytes) -> None:
        self._values = {int(name.removeprefix("at_")): value for name, value in values.items()}
        self.fetched: list[Position] = []

    async def get(self, position: Position) -> Record | None:
        self.fetched.append(position)
        value = self._values.get(position.offset)
        return None if value is None else Record(position=position, key=b"", value=value, time=0.0)


def decode(record: Record) -> str | None:
    value = record.value
    if value == b"broken":
        raise Undecodable("broken")
    return None if value == b"verdict" else value.decode()


async def test_a_record_is_fetched_once_from_its_partition() -> None:
    records = Records(at_7=b"trace")
    reader = TraceReader(records.get, 3, decode)

    assert [await reader.trace(7), await reader.trace(7)] == ["trace", "trace"]
    assert records.fetched == [Position(TRACES, 3, 7)]


async def test_an_expired_record_is_none_and_not_asked_for_again() -> None:
    records = Records()
    reader = TraceReader(records.get, 0, decode)

    assert [await reader.trace(7), await reader.trace(7)] == [None, None]
    assert len(records.fetched) == 1


async def test_a_record_that_is_no_trace_is_none() -> None:
    reader = TraceReader(Records(at_1=b"verdict", at_2=b"broken").get, 0, decode)

    assert [await reader.trace(1), await reader.trace(2)] == [None, None]


def test_history_shows_the_beginning_of_an_output() -> None:
    assert previous_trace("t", "d", None, "x" * 2 * LIMIT).output == "x" * LIMIT
    assert previous_trace("t", "d", "q", None).output is None
