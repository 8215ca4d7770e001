"""The JSON that is put together of what a subject shares and of what an outcome says is that of the whole signal."""

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.records.signal import MAX_BYTES, Sample, Sampling, Signal, encode_signal
from collector.records.signal_batch import made
from collector.records.subject import Subject, SubjectSignals, signal_of
from evaluators.judge_use import JudgeUse
from evaluators.model import Failure, Outcome
from tests.support.examples import examples

TEXT = st.text(max_size=12) | st.sampled_from(["\x7f", "\u202e right", '"\\', "\u2028", "ünd"])
SOME = st.none() | TEXT
AS_THEY_ARE = (
    {*Subject.__struct_fields__, *Outcome.__struct_fields__} & {*Signal.__struct_fields__}
) - {"coverage", "error", "judge", "started"}
"""Fields that a signal has as its subject or its outcome has them."""
NUMBER = st.none() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 60), 1 << 60) | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)

subjects = st.builds(
    Subject,
    scope=st.sampled_from(["trace", "session"]),
    service=TEXT,
    session_id=TEXT,
    session_source=TEXT,
    agent=TEXT,
    agent_version=SOME,
    seen=st.floats(0, 2e9),
    revision=st.integers(0, 1 << 60),
    closed=st.sampled_from([None, "root_ended", "idle"]),
    trace_id=SOME,
    span_id=SOME,
    start=st.integers(0, 1 << 62),
)
outcomes = st.builds(
    Outcome,
    evaluator=TEXT,
    version=TEXT,
    method=st.sampled_from(["deterministic", "llm_judge"]),
    state=st.sampled_from(["scored", "measured", "failed", "skipped", "not_applicable"]),
    score=NUMBER,
    threshold=NUMBER,
    success=st.none() | st.booleans(),
    assumed=NUMBER,
    final=st.booleans(),
    explanation=SOME | st.sampled_from(["x" * MAX_BYTES, "\x7f" * 20_000]),
    metadata=st.dictionaries(TEXT, JSON, max_size=3),
    evidence=st.lists(TEXT, max_size=2).map(tuple),
    reason=SOME,
    error=st.none() | st.builds(Failure, type=TEXT, message=TEXT),
    truncated=SOME,
    contradiction=st.booleans(),
    coverage=st.none() | st.tuples(st.integers(0, 99), st.integers(0, 99)),
    judge=st.none()
    | st.builds(
        JudgeUse,
        model=TEXT,
        calls=st.integers(0, 9),
        input_tokens=st.integers(0, 9),
        output_tokens=st.integers(0, 9),
        cost_usd=NUMBER,
        cached=st.booleans(),
    ),
)


@settings(max_examples=examples(400), deadline=None)
@given(
    subject=subjects,
    of=st.lists(outcomes, min_size=1, max_size=3),
    probability=st.floats(0, 1),
    sample=st.sampled_from(["base", "more"]),
    first=st.booleans(),
)
def test_bytes_and_headers_are_those_of_the_whole_signal(
    subject: Subject, of: list[Outcome], probability: float, sample: Sample, *, first: bool
) -> None:
    signals = SubjectSignals(subject)
    for number, outcome in enumerate(of):
        id_ = f"{number:032x}"
        whole = signal_of(subject, outcome, id_, sampling=Sampling(sample, probability))

        found = signals.made(outcome, id_, sampling=Sampling(sample, probability), first=first)

        assert found.json == encode_signal(whole)
        assert found == made(whole, first=first, start=subject.start)
        assert {name: getattr(whole, name) for name in AS_THEY_ARE} == {
            name: getattr(outcome if hasattr(outcome, name) else subject, name)
            for name in AS_THEY_ARE
        }
        assert whole.outcome == outcome.state
        assert whole.evaluator_version == outcome.version
