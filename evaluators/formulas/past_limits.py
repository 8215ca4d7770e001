"""The constants of the comparison of a score with its own past: what is remembered, when an alarm is raised and ended.

The defaults are those that docs/alerting.md states figures for; other values have other bounds.
"""

import msgspec

DAY = 86400.0  # seconds


class PastLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Times are seconds of log time; counts are scores of one label set, one for each session or trace."""

    newest: int = 1000  # scores that are remembered of all hours together
    hour_newest: int = 500  # scores that are remembered of one hour of the day
    week_newest: int = 320  # scores that are remembered of one hour of the week
    least: int = 20  # scores below which a history is not compared with: a score is inserted only
    own: int = 24  # scores for each hour of the day, or of the week, on average, from which these are compared with
    age: float = 90 * DAY
    """Older scores are forgotten; the newest `newest` are what bounds the history above 11 scores a day."""
    hour_age: float = 14 * DAY  # older scores are forgotten in hours of the day
    week_age: float = 56 * DAY  # older scores are forgotten in hours of the week
    weekly_after: float = 14 * DAY
    """Age of the history from which hours of the week are compared with."""
    slacks: tuple[float, ...] = (0.02, 0.04, 0.08, 0.16)
    """Falls of the mean rank that each of the sums ignores."""
    limits: tuple[float, ...] = (20.40, 11.51, 6.18, 2.99)
    """What each of the sums must reach for an alarm: its mean run is 4 x 576,000 uniform ranks."""
    mark_age: float = 14 * DAY
    """Age of the history until which a change of work is a mark, and raises no alert."""
    strong: float = 3.0  # times its limit that the sum with the largest slack must reach before a fall is strong
    clears_above: float = 0.46  # mean rank from which a drop is over; no change is 0.5
    clears_after: int = 200  # newest scores since the alarm whose mean rank is asked for that
    version_clears_after: int = 20  # scores of a new version that are enough for that
    new_normal: float = 7 * DAY
    """Time after an alarm at which it ends, and the history begins again."""
    versions: int = 16  # versions that are kept apart: those seen last
    journal: int = 128
    """Inserted scores that the small state carries before their strata must be written."""
