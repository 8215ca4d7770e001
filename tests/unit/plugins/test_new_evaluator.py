"""A new evaluator is one function in one file: docs, doctor and session formulas read its declaration."""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from collector.commands import cli
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.doctor.diagnosis import ExaminedTrace, diagnose, examine
from collector.otlp import display
from collector.scoring.rules import JudgedRules, Rules
from evaluators.declare import DEFAULT_READS, Spec
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


def the(registry: Registry, name: str) -> Spec:
    (spec,) = registry.named(name)
    return spec


def test_a_plug_in_stands_in_the_docs_with_its_source_and_what_it_reads(
    with_this_test: Registry,
) -> None:
    page = docs.evaluators_page(with_this_test)

    assert "### `this_test/thrift`\n\nDefined by: The handbook of this test, page 7.\n" in page
    assert "reads tokens; on once its needs are met." in page


def test_a_plug_in_that_declares_neither_has_defaults(with_this_test: Registry) -> None:
    page = docs.evaluators_page(with_this_test)

    assert "### `this_test/brevity`\n\nDefined by: the package `this_test`.\n" in page
    assert the(with_this_test, "this_test/brevity").reads == DEFAULT_READS
    assert the(with_this_test, "this_test/patience").reads == DEFAULT_READS | {"session"}


@pytest.mark.process
def test_a_plug_in_is_listed(with_this_test: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(with_this_test) == len(OURS) + 3
    assert cli.main(["evaluators"]) == 0

    assert "this_test/thrift" in capsys.readouterr().out


@pytest.mark.process
def test_the_doctor_names_a_plug_in_where_content_is_missing(with_this_test: Registry) -> None:
    found = diagnose(
        [a_trace_without_tokens()], plan=plan_from(Config(), registry=with_this_test), stops=()
    )

    by_lack = {finding.lack: finding.stops for finding in found.stacks[0].findings}
    assert "this_test/thrift" in by_lack["no_tokens"]
    assert "this_test/brevity" not in by_lack["no_tokens"]
    assert "this_test/brevity" in by_lack["no_content"]


def a_trace_without_tokens() -> ExaminedTrace:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini"}
    made = SpanSpec(id=1, attributes=attributes, scope="my.agent")
    return examine(show(trace_of(made)), display.decode([request(made)], content=True))


def test_assumed_scores_count_where_the_declaration_says_so(with_this_test: Registry) -> None:
    planned = make_plan(with_this_test, {}, embedder=MODEL)

    judged = JudgedRules(plugins=planned.plugins)
    rules = Rules.of(planned, lambda: SessionScorer(planned), judged)
    assert rules.assumed == {"coherence", "loop_detection", "this_test/thrift"}


def test_every_evaluator_of_ours_names_its_source() -> None:
    assert [spec.name for spec in OURS if not spec.source] == []


def test_every_signal_of_the_session_formulas_is_an_evaluator_of_a_trace() -> None:
    assert get_args(SignalName) == tuple(SIGNALS)
    assert {spec.name for spec in OURS if spec.scope == "trace"} >= set(SIGNALS)
