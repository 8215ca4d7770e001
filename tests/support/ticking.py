"""A clock that tests set."""


class SetClock:
    """Stands still until it is set."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
