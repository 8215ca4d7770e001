"""The pages of frameworks are made of one file: what each entry says is consistent, and known to `spanwise doctor`."""

import ast
import re

import pytest

from collector.config.tree import ReceiverConfig
from evaluators.dialects.advise import all_advice
from scripts.frameworks import PORTS, conversation, frameworks, install, page, scores, setup

FRAMEWORKS = frameworks()
ADVICE = {each.setting.replace("STABILITYOPT_IN", "STABILITY_OPT_IN") for each in all_advice()}
ENDPOINT = re.compile(r"http://127\.0\.0\.1:(\d+)")
each_name = pytest.mark.parametrize("name", sorted(FRAMEWORKS))


def test_the_ports_of_the_pages_are_the_services_own() -> None:
    usual = ReceiverConfig()

    assert {"grpc": usual.grpc.port, "http/protobuf": usual.http.port} == PORTS


@each_name
def test_its_address_is_that_of_its_protocol_and_its_switches_are_those_of_doctor(
    name: str,
) -> None:
    entry = FRAMEWORKS[name]
    variables = entry.variables()
    shown = " ".join([*variables.values(), entry.code])

    assert {int(port) for port in ENDPOINT.findall(shown)} == {PORTS[entry.protocol]}
    named = {value for key, value in variables.items() if key.endswith("_PROTOCOL")}
    assert named <= {entry.protocol}
    assert named or entry.env is not None, "OTEL_EXPORTER_OTLP_PROTOCOL belongs to the endpoint"
    assert {*entry.switches, entry.session} <= ADVICE, "what `spanwise doctor` names"


@each_name
def test_its_program_is_one_and_exports_by_the_protocol_that_is_named(name: str) -> None:
    entry = FRAMEWORKS[name]
    program = setup(entry) + entry.code

    if entry.language == "python":
        ast.parse(program)
    if not entry.own_setup and entry.language == "python":
        kind = {"grpc": "grpc", "http/protobuf": "http"}[entry.protocol]
        assert f"otlp.proto.{kind}.trace_exporter" in program
        assert f"opentelemetry-exporter-otlp-proto-{kind}" in install(entry)


@pytest.mark.process
@each_name
def test_what_it_shows_is_a_recording_that_arrived_by_that_protocol(name: str) -> None:
    entry = FRAMEWORKS[name]

    assert entry.path().is_file()
    assert re.fullmatch("[0-9a-f]{32}", entry.shown())


@pytest.mark.parametrize("protocol", sorted(PORTS))
def test_the_setup_of_a_page_runs(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    python = (each for each in FRAMEWORKS.values() if each.language == "python")
    entry = next(each for each in python if each.protocol == protocol and not each.own_setup)
    for key, value in entry.variables().items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr("opentelemetry.trace.set_tracer_provider", lambda _: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    made: dict[str, object] = {}

    exec(compile(setup(entry), "setup", "exec"), made)

    provider = made["provider"]
    provider.shutdown()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def test_every_page_is_alike() -> None:
    pages = [page(each, "") for each in FRAMEWORKS.values()]
    heads = {tuple(re.findall(r"^## (.*)", text, re.MULTILINE)) for text in pages}

    assert heads == {("Connect it", "What one sees")}
    assert len(FRAMEWORKS) > 15


def test_what_is_not_exported_is_said_to_be_not_exported() -> None:
    trace = {
        "tokens": {"input": None, "output": 3},
        "session_source": "trace",
        "input": "a\nb",
        "output": None,
        "agent": "desk",
        "models": [],
        "gaps": ["no_content"],
        "tool_calls": [
            {"name": "look", "arguments": {"a": 1}, "error": None, "result": "x" * 200},
        ],
    }

    text = conversation(trace)

    assert "user       a b\n" in text
    assert '  look({"a": 1})\n' in text
    assert "tokens not exported in, 3 out; session id from trace; model not exported" in text
    assert "not exported: no_content" in text
    assert max(map(len, text.splitlines())) < 120


def test_an_evaluator_without_a_score_shows_its_outcome() -> None:
    signals = [
        {"evaluator": "b", "outcome": "scored", "score": 0.5, "explanation": "x | y"},
        {"evaluator": "a", "outcome": "not_applicable", "score": None, "explanation": None},
    ]

    assert scores(signals).splitlines()[-2:] == [
        "| `a` | not_applicable |  |",
        "| `b` | 0.50 | x \\| y |",
    ]
