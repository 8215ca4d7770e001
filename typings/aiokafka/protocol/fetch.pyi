from collections.abc import Sequence

class FetchRequest:
    def __init__(
        self,
        max_wait_time: int,
        min_bytes: int,
        max_bytes: int,
        isolation_level: int,
        topics: Sequence[tuple[str, Sequence[tuple[int, int, int]]]],
    ) -> None: ...
