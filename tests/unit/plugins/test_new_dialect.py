"""A new dialect: one file in `evaluators/dialects/readers/`, one line in `registry.DIALECTS`."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from collector.doctor.diagnosis import diagnose, examine
from evaluators.dialects import readers, registry
from evaluators.dialects.decoding import key_sets
from evaluators.dialects.dialect import Sample
from evaluators.dialects.show import show
from evaluators.plan import Plan
from scripts import docs
from tests.support.declared_dialects import forgotten, unsampled
from tests.support.dialect_spans import NAME, trace_of, under

FILE = '''
"""This test: `this_test.*`."""

from evaluators.dialects import fields
from evaluators.dialects.dialect import Advice, By, Dialect, Sample, has, scope

THIS_TEST = Dialect(
    name="this_test",
    speaks=scope("this_test.agents") & has("this_test.kind"),
    kind=By("this_test.kind", kinds={"model": "llm", "function": "tool", "assistant": "agent"}),
    fields={
        "llm": (fields.model("this_test.model"), fields.output_from("this_test.answer")),
        "tool": (
            fields.tool_name("this_test.function", default=fields.span_name),
            fields.arguments("this_test.parameters", "this_test.parameters.v1"),
            fields.result("this_test.returned"),
        ),
        "agent": (
            fields.agent("this_test.assistant"),
            fields.input_from("this_test.question"),
            fields.output_from("this_test.answer"),
        ),
    },
    sample=Sample(
        scope="this_test.agents",
        spans={
            "model call": {"this_test.kind": "model"},
            "tool": {"this_test.kind": "function"},
            "agent": {"this_test.kind": "assistant"},
        },
    ),
    advice=(
        Advice(lacks=("no_session",), setting="THIS_TEST_SESSIONS=on", source="this_test's handbook"),
    ),
)
'''
QUESTION = {"question": "Is it raining?", "answer": "Yes."}
CALL = {"parameters__v1": '{"city": "Paris"}', "returned": "rainy"}
SPANS = (
    under("this_test.", kind="assistant", assistant="clerk", **QUESTION),
    under("this_test.", kind="model", model="this_test-1", answer="Yes."),
    {NAME: "get_weather", **under("this_test.", kind="function", **CALL)},
)


@pytest.fixture(autouse=True)
def _file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The file, beside those of the package."""
    (tmp_path / "this_test.py").write_text(FILE)
    monkeypatch.setattr(readers, "__path__", [*readers.__path__, str(tmp_path)])
    key_sets.forget_shapes()  # readers are remembered per set of keys
    yield
    key_sets.forget_shapes()
    sys.modules.pop(f"{readers.__name__}.this_test", None)


@pytest.fixture
def _line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line."""
    this_test = import_module(f"{readers.__name__}.this_test").THIS_TEST
    monkeypatch.setattr(registry, "DIALECTS", (this_test, *registry.DIALECTS))


@pytest.mark.usefixtures("_line")
def test_its_spans_are_detected_and_read_and_the_doctor_advises_what_it_declares() -> None:
    trace = trace_of(*SPANS, scope="this_test.agents")
    (stack,) = diagnose([examine(show(trace), ())], plan=Plan(), stops=()).stacks

    assert (trace.dialects, trace.agent) == (("this_test",), "clerk")
    assert trace.models == ("this_test-1",)
    assert (trace.input, trace.output) == ("Is it raining?", "Yes.")
    (call,) = trace.tool_calls
    assert (call.name, call.arguments, call.result) == ("get_weather", {"city": "Paris"}, "rainy")
    advice = {finding.lack: finding.advice for finding in stack.findings}
    assert [each.setting for each in advice["no_session"]] == ["THIS_TEST_SESSIONS=on"]


@pytest.mark.usefixtures("_line")
def test_its_keys_and_samples_stand_in_the_docs() -> None:
    page = docs.pages()["dialects.md"]

    section = page.partition("## this_test\n")[2].partition("\n## ")[0]
    assert "| arguments | tool | `this_test.parameters` `this_test.parameters.v1` |" in section
    assert "| this_test | no_session | `THIS_TEST_SESSIONS=on` |" in page
    assert "in scope `this_test.agents`: model call `this_test.kind=model`; tool `" in page


@pytest.mark.usefixtures("_line")
def test_with_its_line_nothing_is_forgotten_and_a_sample_that_is_missing_is_named() -> None:
    new = registry.DIALECTS[0]

    assert forgotten() == unsampled(new) == []
    assert unsampled(replace(new, sample=Sample(spans={"agent": {}}))) == [
        "`sample` of dialect this_test lacks a span of kind `model call`",
        "`sample` of dialect this_test lacks a span of kind `tool`",
    ]


def test_without_the_line_the_walk_over_the_folder_names_it() -> None:
    assert forgotten() == ["this_test.THIS_TEST"]
    assert trace_of(*SPANS, scope="this_test.agents").dialects == ()
