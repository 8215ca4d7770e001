"""`spanwise cases` over a running service: what went wrong becomes a file that new recordings are scored against."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.agents import Turn, request, spans, trace_id
from tests.support.command import evaluated, spanwise
from tests.support.recordings import write
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

QUICK = ("windows.trace.root_grace=200ms", "embedder.kind=none")
FAILING = 3


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Three sessions that fail, one of them twice the same, and two that do not."""
    turns = [Turn(service="shop", session=f"s-{n}", number=n, fails=n < FAILING) for n in range(5)]
    turns.append(Turn(service="shop", session="s-0", number=0, fails=True, calls=2))
    with Service(tmp_path_factory.mktemp("cases") / "data", *QUICK) as running:
        for turn in turns:
            send(running.grpc, request("shop", spans(turn)))
        running.wait_for(
            "every session",
            lambda: {each["session_id"] for each in failed(running)} >= {"s-0", "s-1", "s-2"},
        )
        yield running


def failed(service: Service) -> list[dict[str, str]]:
    found = service.get("/api/v1/signals?limit=400&evaluator=tool_correctness")["items"]
    return [each for each in found if each["success"] is False]


def test_each_failing_question_is_a_case_once_and_scores_new_recordings(
    service: Service, tmp_path: Path
) -> None:
    file = tmp_path / "cases.yaml"
    ended = spanwise("cases", "--failed", "--url", service.admin, "--output", str(file))

    assert (ended.code, ended.err) == (0, "3 cases\n")
    cases = yaml.safe_load(file.read_text())
    asked = sorted(each["match"]["input"] for each in cases)
    assert asked == [f"Where is order {n} of s-{n}?" for n in range(FAILING)]
    assert all("tools" not in each for each in cases), "no call of these succeeded"

    for case in cases:
        case["tools"] = [{"name": "lookup"}]  # what a person knows better
    file.write_text(yaml.safe_dump(cases))
    recording = tmp_path / "new.otlp"
    turn = Turn(service="shop", session="s-1", number=1)
    write(recording, [request("shop", spans(turn))])
    signals = evaluated(str(recording), "--set", f"expectations={file}")
    (met,) = [each for each in signals if each["evaluator"] == "tool_expectations"]
    assert (met["outcome"], met["score"]) == ("scored", 1.0)


def test_all_of_them_as_many_as_asked_for_to_standard_output(service: Service) -> None:
    every = spanwise("cases", "--url", service.admin)
    few = spanwise("cases", "--url", service.admin, "--limit", "2")
    none = spanwise("cases", "--url", service.admin, "--failed", "--evaluator", "coherence")

    assert len(yaml.safe_load(every.out)) == 5
    assert len(yaml.safe_load(few.out)) == 2
    assert yaml.safe_load(none.out) == []
    assert none.err == "0 cases\n"


def test_the_case_of_one_trace_is_the_same_as_on_its_page(service: Service) -> None:
    turn = Turn(service="shop", session="s-3", number=3)
    (alone,) = yaml.safe_load(service.text(f"/trace/case?id={trace_id(turn).hex()}"))

    assert alone in yaml.safe_load(spanwise("cases", "--url", service.admin).out)


def test_a_service_that_refuses_or_is_away_is_one_line(service: Service) -> None:
    refused = spanwise("cases", "--url", service.admin, "--since", "yesterday")
    refused.assert_one_line("since: expected a time")
    spanwise("cases", "--url", "http://127.0.0.1:9").assert_one_line("127.0.0.1:9: no answer")
