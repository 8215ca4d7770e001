from __future__ import annotations

from collector.judging.sample import is_sampled


def test_the_share_is_kept_and_a_larger_sample_holds_the_smaller() -> None:
    keys = [f"bot\0s-{n}".encode() for n in range(4000)]
    small = {key for key in keys if is_sampled(key, 0.1)}
    large = {key for key in keys if is_sampled(key, 0.5)}
    assert 300 < len(small) < 500
    assert small < large
    assert all(is_sampled(key, 1.0) for key in keys)
    assert not any(is_sampled(key, 0.0) for key in keys)
