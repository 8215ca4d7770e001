"""The budget's gauges at the turn of the UTC day, without a call: the clock is the test's."""

from collector.base.telemetry import Telemetry
from collector.config.tree import Config
from collector.judging.budget import DAY, Budget
from collector.judging.judge_process import JudgeProcess

NOON = 20_000 * DAY + DAY / 2
MIDNIGHT = 20_001 * DAY


def test_what_remains_begins_again_at_midnight_less_what_is_under_way() -> None:
    now = [NOON]
    budget = Budget(usd_per_day=5.0, calls_per_minute=60)
    telemetry = Telemetry()
    JudgeProcess(Config(), budget=budget, telemetry=telemetry, clock=lambda: now[0])

    def remaining() -> float | None:
        labels = {"budget": "usd_per_day"}
        return telemetry.registry.get_sample_value("spanwise_judge_budget_remaining_usd", labels)

    budget.restore(NOON, "s", calls=1, usd=2.0, now=NOON)
    budget.restore(NOON - DAY, "s", calls=1, usd=1.0, now=NOON)
    assert budget.reserve(NOON, 0.5, "s")
    assert remaining() == 2.5

    now[0] = MIDNIGHT - 0.001
    assert remaining() == 2.5
    now[0] = MIDNIGHT
    assert remaining() == 4.5

    budget.settle(MIDNIGHT + 1, "s", reserved=0.5, usd=0.25)
    now[0] = MIDNIGHT + 1
    assert remaining() == 4.75
