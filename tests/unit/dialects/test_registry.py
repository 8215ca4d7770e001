"""The tuple of dialects: it holds every declared one, and its order decides."""

from evaluators.dialects.decoding.key_sets import shape_of
from evaluators.dialects.registry import DIALECTS
from tests.support.conventions import CHAT
from tests.support.declared_dialects import declared, forgotten
from tests.support.dialect_spans import SpanSpec, trace_of

MODEL = {**CHAT, "gen_ai.request.model": "m", "gen_ai.response.id": "r"}


def test_every_declared_dialect_stands_in_the_tuple_once_and_is_code_or_a_table() -> None:
    documented = [dialect.name for dialect in DIALECTS if dialect.rows()]

    assert not forgotten()
    assert {dialect for _, dialect in declared()} == set(DIALECTS)
    assert len(set(DIALECTS)) == len(DIALECTS)
    assert len(set(documented)) == len(documented)
    assert all((dialect.read is None) != (not dialect.fields) for dialect in DIALECTS)


def test_the_first_that_fits_reads_the_span() -> None:
    both = {"openinference.span.kind": "LLM", "ai.operationId": "ai.generateText.doGenerate"}

    assert trace_of(both).dialects == ("vercel_ai",)


def test_the_same_keys_under_another_scope_or_with_events_are_another_dialect() -> None:
    event = [("gen_ai.choice", {"message": "hi"})]
    other = {**MODEL, "gen_ai.response.id": "s"}

    trace = trace_of(
        MODEL,
        SpanSpec(attributes=other, scope="autogen-core"),
        SpanSpec(attributes=MODEL, events=event),
        scope="plainly",
    )

    assert trace.dialects == ("autogen", "genai", "genai_events")


def test_scopes_without_end_are_not_remembered() -> None:
    for number in range(100):
        trace_of(MODEL, scope=f"scope {number}")

    assert len(shape_of(frozenset(MODEL)).readers) <= 16
