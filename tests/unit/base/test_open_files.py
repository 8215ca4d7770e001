"""How many connections a listener takes."""

import resource

import pytest

from collector.base.net import ENOUGH, connections

NO_LIMIT = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ((1024, 4096), (4096, 4096), 1000),
        ((1024, 1024), (1024, 1024), 256),
        ((1024, NO_LIMIT), (ENOUGH, NO_LIMIT), 1000),
        ((1 << 20, 1 << 20), (1 << 20, 1 << 20), 1000),
        ((NO_LIMIT, NO_LIMIT), (NO_LIMIT, NO_LIMIT), 1000),
    ],
)
def test_the_limit_is_raised_and_never_lowered(
    monkeypatch: pytest.MonkeyPatch,
    before: tuple[int, int],
    after: tuple[int, int],
    found: int,
) -> None:
    limits = before

    def raised(_: int, wanted: tuple[int, int]) -> None:
        nonlocal limits
        limits = wanted

    def now(_: int) -> tuple[int, int]:
        return limits

    monkeypatch.setattr(resource, "getrlimit", now)
    monkeypatch.setattr(resource, "setrlimit", raised)

    assert connections(1000, share=1 / 4) == found
    assert limits == after
