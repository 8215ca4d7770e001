"""Scores of other evaluators beside ours: what they count as, and which versions they compare."""

from tests.support.publisher import Publisher
from tests.support.signals import signal


async def test_names_of_external_evaluators_take_no_place_of_ours() -> None:
    publisher = Publisher()
    loud = [
        signal(trace=f"t{n}-{repeat}", evaluator=f"x{n}", method="external")
        for n in range(70)
        for repeat in range(5)
    ]
    await publisher.publish(signal(trace="rare"))
    await publisher.publish(*loud)
    await publisher.publish(signal(trace="rare again"))

    def counted(evaluator: str) -> float | None:
        return publisher.value("evaluations_total", evaluator=evaluator)

    assert (counted("tool_correctness"), counted("x0")) == (2, 5)
    assert counted("_other") == 30, "64 of the 70 have a label"


async def test_versions_are_compared_by_an_external_evaluator_of_traces_too() -> None:
    publisher = Publisher()
    await publisher.publish(
        *(
            signal(f"s-{n}", f"t{n}", evaluator=name, method=method, agent_version=str(n % 2))
            for n in range(6)
            for name, method in (("tone", "external"), ("tool_correctness", "deterministic"))
        )
    )

    agent = ("support-bot", "planner")
    found = publisher.exporter.versions(agent, "tone")
    assert {version: len(each.entries) for version, each in found.items()} == {"0": 3, "1": 3}
    assert publisher.exporter.versions(agent, "tool_correctness") == {}
