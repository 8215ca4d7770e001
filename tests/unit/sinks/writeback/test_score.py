"""What of a signal is written into a tool, on which of its traces or sessions, at which place."""

from typing import Any

import pytest

from collector.records.signal import SessionTraces
from collector.sinks.writeback.score import (
    ScoreShape,
    WrittenScore,
    WrittenSubject,
    is_asked_for,
    key_of,
    score_of,
)
from tests.support.signals import failed, hex_of, signal, skipped
from tests.support.tools.scores import published_signals

SHAPE = ScoreShape(sessions=frozenset({"session.id"}))
ENDS = SessionTraces(first="a" * 32, newest="b" * 32)


def scored(shape: ScoreShape = SHAPE, **fields: Any) -> WrittenScore:
    (published,) = published_signals(signal(**fields))
    found = score_of(published, shape)
    assert found is not None
    return found


def asked_for(what: Any, shape: ScoreShape = SHAPE) -> bool:
    return is_asked_for(published_signals(what)[0], shape)


def test_a_score_of_a_trace_is_on_the_trace() -> None:
    score = scored(score=0.25)

    assert score.subject == WrittenSubject("trace", hex_of("t-1"))
    assert (score.name, score.value, score.label) == ("tool_correctness", 0.25, "fail")
    assert score.comment == "3 of 4 calls were right"


@pytest.mark.parametrize(
    ("source", "hangs_on", "expected"),
    [
        ("session.id", "session", WrittenSubject("session", "s-1")),
        ("gen_ai.conversation.id", "session", WrittenSubject("trace", ENDS.newest)),
        ("trace", "session", WrittenSubject("trace", ENDS.newest)),
        ("session.id", "first", WrittenSubject("trace", ENDS.first)),
        ("trace", "first", WrittenSubject("trace", ENDS.newest)),
    ],
)
def test_a_score_of_a_session_is_where_the_tool_shows_it(
    source: str, hangs_on: Any, expected: WrittenSubject
) -> None:
    shape = SHAPE._replace(hangs_on=hangs_on)

    assert scored(shape, trace=None, session_source=source, traces=ENDS).subject == expected


def test_a_session_of_an_earlier_version_without_traces_has_no_place_on_a_trace() -> None:
    (published,) = published_signals(signal(trace=None, session_source="trace"))

    assert score_of(published, SHAPE) is None


def test_the_place_is_the_same_for_every_revision_method_and_version() -> None:
    one = scored(evaluator="x")
    other = scored(evaluator="x", revision=3, method="llm_judge", evaluator_version="2", score=0.1)

    assert one.key == other.key == key_of("support-bot", "trace", hex_of("t-1"), "x")
    assert one.uuid == other.uuid
    assert len(one.key) == 32


@pytest.mark.parametrize(
    "fields", [{"evaluator": "y"}, {"trace": "t-2"}, {"service": "other"}, {"trace": None}]
)
def test_another_evaluator_subject_service_or_scope_has_another_place(
    fields: dict[str, Any],
) -> None:
    assert scored(**fields).key != scored().key


def test_content_is_never_written() -> None:
    score = scored(metadata={"user_input": "my secret"}, agent_version=None)

    assert "secret" not in repr(score)
    assert set(score.metadata) == {
        "spanwise.id",
        "spanwise.revision",
        "spanwise.method",
        "spanwise.evaluator_version",
    }
    assert scored(SHAPE._replace(explanation=0)).comment is None
    assert scored(SHAPE._replace(explanation=6)).comment == "3 of 4"


def test_the_page_is_linked_where_it_has_an_address() -> None:
    shape = SHAPE._replace(page="http://127.0.0.1:4390")
    of_session = scored(shape, session="a b&c", trace=None)

    assert scored(shape).metadata["spanwise.page"] == (
        f"http://127.0.0.1:4390/trace?id={hex_of('t-1')}"
    )
    assert of_session.metadata["spanwise.page"] == (
        "http://127.0.0.1:4390/session?id=a+b%26c&service=support-bot"
    )


def test_only_final_outcomes_that_are_no_measurements_change_a_tool() -> None:
    assert asked_for(signal())
    assert asked_for(skipped()), "it takes an earlier score away"
    assert not asked_for(signal(final=False))
    assert not asked_for(signal(score=None, outcome="measured"))


def test_evaluators_that_were_not_named_are_left_out() -> None:
    shape = SHAPE._replace(evaluators=frozenset({"confidence"}))

    assert asked_for(signal(evaluator="confidence"), shape)
    assert not asked_for(signal(), shape)
    assert not asked_for(signal(trace=None), SHAPE._replace(takes_sessions=False))


def test_what_failed_is_no_score_and_an_error_only_where_the_tool_shows_errors() -> None:
    (published,) = published_signals(failed())
    without = score_of(published, SHAPE)
    shown = score_of(published, SHAPE._replace(takes_errors=True))

    assert without is not None
    assert without.is_gone
    assert shown is not None
    assert (shown.value, shown.error, shown.is_gone) == (None, "timeout", False)


@pytest.mark.parametrize(
    ("source", "tool", "is_written"),
    [
        ("langfuse-sdk 3.2", ("langfuse",), False),
        ("strands_evals 1.7 (MLflow)", ("mlflow",), False),
        ("ddtrace 3", ("datadog", "ddtrace"), False),
        ("langfuse-sdk 3.2", ("mlflow",), True),
        (None, ("mlflow",), True),
    ],
)
def test_a_score_is_not_written_to_the_tool_that_it_came_from(
    source: str | None, tool: tuple[str, ...], is_written: bool
) -> None:
    metadata = {} if source is None else {"source": source}
    (published,) = published_signals(signal(method="external", metadata=metadata))
    assert (score_of(published, SHAPE._replace(tool=tool)) is not None) == is_written
    (ours,) = published_signals(signal(metadata=metadata))
    assert score_of(ours, SHAPE._replace(tool=tool)) is not None
