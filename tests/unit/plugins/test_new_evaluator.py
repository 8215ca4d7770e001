"""A new evaluator is one function in one file: docs, doctor and session formulas read its declaration."""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.doctor.diagnosis import diagnose, examine
from collector.otlp import display
from collector.scoring.rules import JudgedRules, Rules
from evaluators.declare import DEFAULT_READS
from evaluators.dialects.show import show
from evaluators.formulas.signals import SIGNALS, SignalName
from evaluators.plan import make_plan
from evaluators.providers.wordllama import MODEL
from evaluators.registry import Registry
from evaluators.run import SessionScorer
from scripts import docs
from tests.support import plugin
from tests.support.dialect_spans import SpanSpec, request, trace_of
from tests.support.evaluating import OURS

THIS_TEST = """
from evaluators import Score, Session, Trace, evaluator


@evaluator(version="1", source="The handbook of this test, page 7", reads={"tokens"}, assumed_counts=True)
def thrift(trace: Trace) -> Score:
    \"""Few tokens.\"""
    return Score(value=1.0)


@evaluator(version="1")
def brevity(trace: Trace) -> Score:
    \"""Declares nothing that it need not declare.\"""
    return Score(value=1.0)


@evaluator(version="1")
def patience(session: Session) -> Score:
    \"""Of a session.\"""
    return Score(value=1.0)
"""


@pytest.fixture
def with_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    folder = plugin.install(tmp_path, THIS_TEST)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    with plugin.imported_from(folder):
        yield Registry.discover()


def test_a_plug_in_is_in_the_docs_with_its_source_and_what_it_reads_or_with_defaults(
    with_this_test: Registry,
) -> None:
    page = docs.evaluators_page(with_this_test)
    reads = [with_this_test.named(f"this_test/{name}")[0].reads for name in ("brevity", "patience")]

    assert "### `this_test/thrift`\n\nDefined by: The handbook of this test, page 7.\n" in page
    assert "reads tokens; on once its needs are met." in page
    assert "### `this_test/brevity`\n\nDefined by: the package `this_test`.\n" in page
    assert reads == [DEFAULT_READS, DEFAULT_READS | {"session"}]


@pytest.mark.process
def test_the_doctor_names_a_plug_in_where_content_is_missing(with_this_test: Registry) -> None:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini"}
    made = SpanSpec(id=1, attributes=attributes, scope="my.agent")
    seen = examine(show(trace_of(made)), display.decode([request(made)], content=True))

    plan = plan_from(Config(), registry=with_this_test)
    (stack,) = diagnose([seen], plan=plan, stops=()).stacks

    by_lack = {finding.lack: finding.stops for finding in stack.findings}
    assert "this_test/thrift" in by_lack["no_tokens"]
    assert "this_test/brevity" not in by_lack["no_tokens"]
    assert "this_test/brevity" in by_lack["no_content"]


def test_assumed_scores_count_where_the_declaration_says_so(with_this_test: Registry) -> None:
    planned = make_plan(with_this_test, {}, embedder=MODEL)

    judged = JudgedRules(plugins=planned.plugins)
    rules = Rules.of(planned, lambda: SessionScorer(planned), judged)
    assert rules.assumed == {"coherence", "loop_detection", "this_test/thrift"}


def test_every_evaluator_of_ours_names_its_source_and_formulas_read_those_of_a_trace() -> None:
    assert [spec.name for spec in OURS if not spec.source] == []
    assert get_args(SignalName) == tuple(SIGNALS)
    assert {spec.name for spec in OURS if spec.scope == "trace"} >= set(SIGNALS)
