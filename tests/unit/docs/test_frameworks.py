"""Pages of frameworks and agents: each is consistent, known to `spanwise doctor`, and shows a picture."""

import ast
import re
from pathlib import Path

import pytest

from collector.config.tree import ReceiverConfig
from evaluators.dialects.advise import all_advice
from scripts.doc_pictures import FOLDER, WIDTH, shown
from scripts.frameworks import PORTS, ROOT, conversation, frameworks, install, page, scores, setup
from scripts.webp import SIZE
from tests.support.table import for_each

FRAMEWORKS = frameworks()
ADVICE = {each.setting.replace("STABILITYOPT_IN", "STABILITY_OPT_IN") for each in all_advice()}
ENDPOINT = re.compile(r"http://127\.0\.0\.1:(\d+)")
each_name = pytest.mark.parametrize("name", sorted(FRAMEWORKS))


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


def test_every_page_is_alike_and_its_ports_are_the_services_own() -> None:
    pages = [page(each, "") for each in FRAMEWORKS.values()]
    usual = ReceiverConfig()

    heads = {tuple(re.findall(r"^## (.*)", text, re.MULTILINE)) for text in pages}
    assert heads == {("Connect it", "What one sees")}
    assert len(FRAMEWORKS) > 15
    assert {"grpc": usual.grpc.port, "http/protobuf": usual.http.port} == PORTS


def test_what_is_not_exported_and_what_has_no_score_is_said() -> None:
    call = {"name": "look", "arguments": {"a": 1}, "error": None, "result": "x" * 200}
    missing = dict.fromkeys(("output", "error"))
    text = conversation(
        {
            "tokens": {"input": None, "output": 3},
            "session_source": "trace",
            "input": "a\nb",
            "agent": "desk",
            "models": [],
            "gaps": ["no_content"],
            "tool_calls": [call],
            **missing,
        }
    )
    signals = [
        {"evaluator": "b", "outcome": "scored", "score": 0.5, "explanation": "x | y"},
        {"evaluator": "a", "outcome": "not_applicable", "score": None, "explanation": None},
    ]

    assert "user       a b\n" in text
    assert '  look({"a": 1})\n' in text
    assert "tokens not exported in, 3 out; session id from trace; model not exported" in text
    assert "not exported: no_content" in text
    assert max(map(len, text.splitlines())) < 120
    assert scores(signals).splitlines()[-2:] == [
        "| `a` | not_applicable |  |",
        "| `b` | 0.50 | x \\| y |",
    ]


FOLDER_SIZE = 2_200_000
"""Bytes: every clone has them; about 58 KB for each page of a framework or an agent."""
SHOWN = re.compile(r"!\[([^\]]*)\]\(([\w./-]+\.webp)\)")
DOCS = ROOT / "docs"
PAGES = {
    path.stem: path for folder in ("agents", "frameworks") for path in (DOCS / folder).glob("*.md")
}
WANTED = sorted(shown())


@for_each("name", WANTED)
def test_a_page_with_a_recording_shows_its_picture_as_wide_as_all(name: str) -> None:
    """With transparency (VP8X), or without (VP8)."""
    made = assert_shown(PAGES[name], FOLDER / f"{name}.webp", "doc_pictures")

    kind, width = made[12:16], int.from_bytes(made[24:27], "little") + 1
    assert (made[:4], made[8:12]) == (b"RIFF", b"WEBP")
    assert kind in (b"VP8X", b"VP8 ")
    if kind == b"VP8 ":
        width = int.from_bytes(made[26:28], "little") & 0x3FFF
    assert width == WIDTH


@for_each(
    "page,picture,script",
    [
        ("outlets/phoenix.md", "outlets/pictures/phoenix.webp", "outlet_pictures"),
        ("outlets/mlflow.md", "outlets/pictures/mlflow.webp", "outlet_pictures"),
        ("forwarding.md", "pictures/front/forwarding.webp", "forward_picture"),
        ("index.md", "pictures/front/agent.webp", "front_picture"),
    ],
)
def test_a_page_of_its_own_shows_its_picture(page: str, picture: str, script: str) -> None:
    assert_shown(DOCS / page, DOCS / picture, script)


def assert_shown(page: Path, picture: Path, script: str) -> bytes:
    """The page's one picture, which is small and whose text says what is on it."""
    ((alt, shown),) = SHOWN.findall(page.read_text("utf-8"))

    assert (page.parent / shown).resolve() == picture, f"python -m scripts.{script}"
    assert len(alt.split()) > 8
    made = picture.read_bytes()
    assert len(made) <= SIZE
    return made


def test_there_is_no_picture_that_no_page_shows_and_together_they_are_small() -> None:
    kept = {path.stem: path.stat().st_size for path in FOLDER.glob("*.webp")}

    assert {*frameworks(), "claude-code", "codex", "sdk-log-events"} <= set(WANTED)
    assert sorted(kept) == WANTED
    assert sum(kept.values()) <= FOLDER_SIZE


def test_the_first_page_shows_the_three_commands() -> None:
    page = (DOCS / "index.md").read_text("utf-8")
    (commands,) = re.findall(r"```sh\n(make run.*?)```", page, re.DOTALL)

    assert len(commands.splitlines()) == 3
    assert commands in (ROOT / "README.md").read_text("utf-8")
