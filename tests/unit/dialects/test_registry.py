"""The tuple of dialects: it holds every declared one, and its order decides."""

from evaluators.dialects.decoding.key_sets import shape_of
from evaluators.dialects.registry import DIALECTS
from tests.support.declared_dialects import declared, forgotten
from tests.support.dialect_spans import SpanSpec, trace_of

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.response.id": "r"}


def test_every_declared_dialect_stands_in_the_tuple_once_and_is_code_or_a_table() -> None:
    documented = [dialect.name for dialect in DIALECTS if dialect.rows()]

    assert not forgotten()
    assert {dialect for _, dialect in declared()} == set(DIALECTS)
    assert len(set(DIALECTS)) == len(DIALECTS)
    assert len(set(documented)) == len(documented)
    assert all((dialect.read is None) != (not dialect.fields) for dialect in DIALECTS)


def test_the_first_that_fits_reads_the_span() -> None:
    both = {"openinference.span.kind": "LLM", "ai.operationId": "ai.generateText.doGenerate"}

    assert trace_of(SpanSpec(id=1, attributes=both)).dialects == ("vercel_ai",)


def test_the_same_keys_under_another_scope_or_with_events_are_another_dialect() -> None:
    event = [("gen_ai.choice", {"message": "hi"})]
    other = {**CHAT, "gen_ai.response.id": "s"}

    spans = (
        SpanSpec(id=1, attributes=CHAT, scope="plainly"),
        SpanSpec(id=2, parent=1, attributes=other, scope="autogen-core"),
        SpanSpec(id=3, parent=1, attributes=CHAT, scope="plainly", events=event),
    )

    assert trace_of(*spans).dialects == ("autogen", "genai", "genai_events")


def test_scopes_without_end_are_not_remembered() -> None:
    for number in range(100):
        trace_of(SpanSpec(id=1, attributes=CHAT, scope=f"scope {number}"))

    assert len(shape_of(frozenset(CHAT)).readers) <= 16
