"""A new dialect: one file in `evaluators/dialects/readers/`, one line in `registry.DIALECTS`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from collector.doctor.diagnosis import diagnose, examine
from evaluators.dialects import readers, registry
from evaluators.dialects.decoding import key_sets
from evaluators.dialects.show import show
from evaluators.plan import Plan
from scripts import docs
from tests.support.declared_dialects import forgotten
from tests.support.dialect_spans import SpanSpec, trace_of

FILE = '''
"""Acme: `acme.*`."""

from evaluators.dialects import fields
from evaluators.dialects.dialect import Advice
from evaluators.dialects.dialect import By, Dialect, has, scope

ACME = Dialect(
    name="acme",
    speaks=scope("acme.agents") & has("acme.kind"),
    kind=By("acme.kind", kinds={"model": "llm", "function": "tool", "assistant": "agent"}),
    fields={
        "llm": (fields.model("acme.model"), fields.output_from("acme.answer")),
        "tool": (
            fields.tool_name("acme.function", default=fields.span_name),
            fields.arguments("acme.parameters", "acme.parameters.v1"),
            fields.result("acme.returned"),
        ),
        "agent": (
            fields.agent("acme.assistant"),
            fields.input_from("acme.question"),
            fields.output_from("acme.answer"),
        ),
    },
    advice=(
        Advice(lacks=("no_session",), setting="ACME_SESSIONS=on", source="acme's handbook"),
    ),
)
'''
SPANS = (
    SpanSpec(
        id=1,
        scope="acme.agents",
        attributes={
            "acme.kind": "assistant",
            "acme.assistant": "clerk",
            "acme.question": "Is it raining?",
            "acme.answer": "Yes.",
        },
        end=99,
    ),
    SpanSpec(
        id=2,
        parent=1,
        scope="acme.agents",
        attributes={"acme.kind": "model", "acme.model": "acme-1", "acme.answer": "Yes."},
        start=10,
    ),
    SpanSpec(
        id=3,
        parent=1,
        name="get_weather",
        scope="acme.agents",
        attributes={
            "acme.kind": "function",
            "acme.parameters.v1": '{"city": "Paris"}',
            "acme.returned": "rainy",
        },
        start=20,
    ),
)


@pytest.fixture(autouse=True)
def _file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The file, beside those of the package."""
    (tmp_path / "acme.py").write_text(FILE)
    monkeypatch.setattr(readers, "__path__", [*readers.__path__, str(tmp_path)])
    key_sets.forget_shapes()  # readers are remembered per set of keys
    yield
    key_sets.forget_shapes()
    sys.modules.pop(f"{readers.__name__}.acme", None)


@pytest.fixture
def _line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line."""
    acme = import_module(f"{readers.__name__}.acme").ACME
    monkeypatch.setattr(registry, "DIALECTS", (acme, *registry.DIALECTS))


@pytest.mark.usefixtures("_line")
def test_its_spans_are_detected_and_read() -> None:
    trace = trace_of(*SPANS)

    assert (trace.dialects, trace.agent, trace.models) == (("acme",), "clerk", ("acme-1",))
    assert (trace.input, trace.output) == ("Is it raining?", "Yes.")
    (call,) = trace.tool_calls
    assert (call.name, call.arguments, call.result) == ("get_weather", {"city": "Paris"}, "rainy")


@pytest.mark.usefixtures("_line")
def test_its_keys_stand_in_the_docs() -> None:
    page = docs.pages()["dialects.md"]

    section = page.partition("## acme\n")[2].partition("\n## ")[0]
    assert "| arguments | tool | `acme.parameters` `acme.parameters.v1` |" in section
    assert "| acme | no_session | `ACME_SESSIONS=on` |" in page


@pytest.mark.usefixtures("_line")
def test_the_doctor_advises_what_its_declaration_says() -> None:
    seen = examine(show(trace_of(*SPANS)), ())

    (stack,) = diagnose([seen], plan=Plan(), stops=()).stacks

    advice = {finding.lack: finding.advice for finding in stack.findings}
    assert [each.setting for each in advice["no_session"]] == ["ACME_SESSIONS=on"]


@pytest.mark.usefixtures("_line")
def test_with_its_line_nothing_is_forgotten() -> None:
    assert forgotten() == []


def test_without_the_line_the_walk_over_the_folder_names_it() -> None:
    assert forgotten() == ["acme.ACME"]
    assert trace_of(*SPANS).dialects == ()
