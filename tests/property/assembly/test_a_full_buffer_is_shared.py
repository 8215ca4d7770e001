"""Whatever arrives, the buffer is bounded, and a service within its share loses nothing while another is above it."""

from collections import Counter
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.assembly.assembler import Buffer
from collector.assembly.closed_traces import ClosedTraces
from collector.assembly.open_traces import OpenTraces
from collector.assembly.service_queues import SERVICE_COST
from collector.log.port import SPANS, Position, Record
from tests.support.examples import examples
from tests.support.open_traces_driver import WINDOW, finished
from tests.support.spans import Made, request

LIMIT = 20_000
SERVICES = ("", "a", "b", "c")
PARTITIONS = (0, 1)


@dataclass(frozen=True, slots=True)
class Sent:
    service: str
    trace: int
    size: int
    after: float


class Stand:
    """The buffer over two partitions, and whose each trace is."""

    def __init__(self, share: float) -> None:
        self.owned = {
            each: OpenTraces(each, WINDOW, ClosedTraces(), start=None) for each in PARTITIONS
        }
        self.buffer = Buffer(self.owned, limit=LIMIT, share=share)
        self.fair = LIMIT * share
        self.services: dict[bytes, str] = {}
        self.time = 100.0
        self.offset = 0
        for each in self.owned.values():
            each.join(self.buffer.shares)

    def send(self, sent: Sent) -> None:
        self.time += sent.after
        self.offset += 1
        number = 1 + len(SERVICES) * sent.trace + SERVICES.index(sent.service)
        made = Made(
            trace=number,
            span=self.offset + 1,
            parent=1,
            service=sent.service,
            text="x" * sent.size,
        )
        self.services[number.to_bytes(16, "big")] = sent.service
        partition = number % len(PARTITIONS)
        position = Position(SPANS, partition, self.offset)
        record = Record(position=position, key=b"", value=request(made), time=self.time)
        finished(self.owned[partition].taking(record))

    def taken(self) -> Counter[str]:
        """What each service takes, added up from the traces themselves."""
        taken: Counter[str] = Counter()
        for each in self.owned.values():
            services = {trace.service for trace in each.open}
            taken.update(dict.fromkeys(services, SERVICE_COST))
            for trace in each.open:
                taken[trace.service] += trace.cost
        return taken

    def relieve(self) -> None:
        while True:
            before = self.taken()
            closed = next(self.buffer.relieve(), None)
            if closed is None:
                return
            assert before.total() > LIMIT, "nothing closes while there is room"
            if any(taken > self.fair for taken in before.values()):
                assert before[self.services[closed.trace_id]] > self.fair


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(
        st.builds(
            Sent,
            service=st.sampled_from(SERVICES),
            trace=st.integers(0, 5),
            size=st.sampled_from([0, 300, 3_000, 9_000]),
            after=st.sampled_from([0.0, 1.0, 400.0]),
        ),
        max_size=40,
    ),
    st.sampled_from([0.2, 0.5, 1.0]),
)
def test_whoever_is_above_the_share_gives_way(arrivals: list[Sent], share: float) -> None:
    stand = Stand(share)

    for each in arrivals:
        stand.send(each)
        stand.relieve()

        assert stand.buffer.shares.size == stand.taken().total() <= LIMIT


def test_a_partition_that_leaves_takes_its_traces_along() -> None:
    stand = Stand(0.5)
    stand.send(Sent("a", 0, 9_000, 0))
    stand.send(Sent("b", 0, 3_000, 0))
    before = stand.buffer.shares.size

    for each in stand.owned.values():
        each.leave()
    assert (stand.buffer.shares.size, stand.buffer.shares.greediest) == (0, None)

    for each in stand.owned.values():
        each.join(stand.buffer.shares)
    assert (stand.buffer.shares.size, stand.buffer.shares.greediest) == (before, "a")
