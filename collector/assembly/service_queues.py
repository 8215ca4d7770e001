"""What each service takes of the buffer of open traces, and its open traces in one partition, the oldest first."""

from collections import OrderedDict

from collector.assembly.open_trace import OpenTrace

SERVICE_COST = 700  # bytes that a service takes besides its open traces


class Shares:
    def __init__(self, fair: float) -> None:
        """`fair`: the bytes above which a service takes more than its share."""
        self.size = 0
        self._fair = fair
        self._sizes: dict[str, int] = {}
        self._above: set[str] = set()

    def add(self, service: str, size: int) -> None:
        """The service's traces take `size` bytes more; a negative number gives them back."""
        self.size += size
        taken = self._sizes.pop(service, 0) + size
        if taken:
            self._sizes[service] = taken
        if taken > self._fair:
            self._above.add(service)
        else:
            self._above.discard(service)

    @property
    def greediest(self) -> str | None:
        """The service above its share that takes most; None: every service is within its share."""
        return max(self._above, key=lambda each: (self._sizes[each], each), default=None)


class _Queue:
    __slots__ = ("size", "traces")

    def __init__(self) -> None:
        self.size = 0
        self.traces: OrderedDict[bytes, OpenTrace] = OrderedDict()


class ServiceQueues:
    def __init__(self) -> None:
        self.size = 0  # bytes of memory that they take
        self._queues: dict[str, _Queue] = {}
        self._shares: Shares | None = None

    def add(self, trace: OpenTrace) -> None:
        queue = self._queues.get(trace.service)
        if queue is None:
            queue = self._queues[trace.service] = _Queue()
            self._charge(trace.service, queue, SERVICE_COST)
        queue.traces[trace.trace_id] = trace
        self._charge(trace.service, queue, trace.cost)

    def grow(self, trace: OpenTrace, size: int) -> None:
        self._charge(trace.service, self._queues[trace.service], size)

    def remove(self, trace: OpenTrace) -> None:
        queue = self._queues[trace.service]
        del queue.traces[trace.trace_id]
        self._charge(trace.service, queue, -trace.cost)
        if not queue.traces:
            self._charge(trace.service, queue, -SERVICE_COST)
            del self._queues[trace.service]

    def oldest(self, service: str) -> OpenTrace | None:
        queue = self._queues.get(service)
        return None if queue is None else next(iter(queue.traces.values()))

    def join(self, shares: Shares) -> None:
        for service, queue in self._queues.items():
            shares.add(service, queue.size)
        self._shares = shares

    def leave(self) -> None:
        if self._shares is not None:
            for service, queue in self._queues.items():
                self._shares.add(service, -queue.size)
        self._shares = None

    def _charge(self, service: str, queue: _Queue, size: int) -> None:
        queue.size += size
        self.size += size
        if self._shares is not None:
            self._shares.add(service, size)
