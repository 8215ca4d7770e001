"""The pages of docs/frameworks: how to connect one, and what Spanwise makes of a recording that was made with it.

`python -m scripts.frameworks [FOLDER]` writes them, a test fails when one is stale.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "frameworks" / "frameworks.yaml"
RECORDINGS = [
    ROOT / "tests" / "data" / name for name in ("captures", "captures_more", "captures_logs")
]
TOOLS = {"python": "pip install", "node": "npm install", "rust": "cargo add"}
FENCES = {"node": "js", "java": "properties"}
"""How a block of a language's code is marked, where that is not its name."""
PORTS = {"grpc": 4317, "http/protobuf": 4318}
SERVICE = "my-agent"
TURN = "    ...  # one turn of your agent"
IMPORTS = {
    "propagate_attributes": "from langfuse import propagate_attributes",
    "trace": "from opentelemetry import trace",
    "using_attributes": "from openinference.instrumentation import using_attributes",
}
"""Of the names that the line of a session begins with."""
TEXT = 110
"""Characters of a text that a page shows."""
NOTE = "<!-- Made by `python -m scripts.frameworks` of frameworks.yaml and a recording. -->"
ABOUT = """\
Each page has the lines that connect it, and what Spanwise makes of a recording of it that is among the tests' data.
Others are read too: [dialects](../dialects.md)."""


class Framework(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One entry of the data file, which says what each field is."""

    title: str
    language: Literal["python", "node", "java", "kotlin", "rust"]
    install: str
    code: str
    session: str
    protocol: Literal["grpc", "http/protobuf"]
    turn: str = 'with trace.get_tracer("my-agent").start_as_current_span("turn") as span:'
    own_setup: bool = False
    switches: list[str] = []
    env: dict[str, str] | None = None
    recording: str
    trace: str | None = None
    note: str = ""
    release: str = "OTEL_RESOURCE_ATTRIBUTES=service.version=1.4.2"

    def variables(self) -> dict[str, str]:
        """What its environment holds: where to send, and the switches that are variables."""
        usual = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{PORTS[self.protocol]}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": self.protocol,
            "OTEL_SERVICE_NAME": SERVICE,
        }
        switches = (
            {} if self.language == "java" else dict(part.split("=", 1) for part in self.parts())
        )
        return {**(usual if self.env is None else self.env), **switches}

    def parts(self) -> list[str]:
        """Its switches, one setting each."""
        return [part for each in self.switches for part in each.split(" ")]

    def program(self) -> str:
        """What connects it, whole."""
        lines = [each for each in (setup(self), self.code.rstrip()) if each]
        return "\n".join([*lines, *(self.parts() if self.language == "java" else ())]).rstrip()

    def exports(self) -> list[str]:
        """The same as lines of a shell, the protocol beside its endpoint."""
        lines: list[str] = []
        for name, value in self.variables().items():
            if name.endswith("_PROTOCOL"):
                lines[-1] += f" {name}={value}"
            else:
                lines.append(f"export {name}={value}")
        return lines

    def path(self) -> Path:
        """The spans of its recording; the log records, where there are any, stand beside them."""
        return next(
            path for each in RECORDINGS if (path := each / f"{self.recording}.otlp").exists()
        )

    def shown(self) -> str:
        """The id of the trace that its page shows."""
        return self.trace or first_turn(self.path())


def pages() -> dict[str, str]:
    """Every page, by file name."""
    entries = frameworks()
    shown = seen(entries)
    made = {
        f"{name}.md": page(each, picture(name) + shown[name])
        for name, each in sorted(entries.items())
    }
    listed = [f"- [{each.title}]({name}.md)" for name, each in sorted(entries.items())]
    tree = ["```{toctree}", ":hidden:", *sorted(entries), "```"]
    lines = ["# Frameworks", "", NOTE, "", ABOUT, "", *listed, "", *tree, ""]
    return {"index.md": "\n".join(lines), **made}


def picture(name: str) -> str:
    """The picture that `python -m scripts.doc_pictures` takes of the page of the same trace."""
    alt = "The page of this trace: a row for each score, then what the user, the agent and its tools said"
    return f"![{alt}](../pictures/{name}.webp)\n\n"


def frameworks() -> dict[str, Framework]:
    """Every entry, by the name of its page."""
    return msgspec.convert(yaml.safe_load(DATA.read_text("utf-8")), dict[str, Framework])


def setup(framework: Framework) -> str:
    """The lines that connect any program of this language; empty where the framework does it itself."""
    if framework.own_setup:
        return ""
    if framework.language == "node":
        return (
            'import { NodeSDK } from "@opentelemetry/sdk-node";\n'
            'import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";\n\n'
            "new NodeSDK({ traceExporter: new OTLPTraceExporter() }).start();\n"
        )
    return (
        "from opentelemetry import trace\n"
        f"from opentelemetry.exporter.otlp.proto.{_module(framework)}.trace_exporter import OTLPSpanExporter\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "from opentelemetry.sdk.trace.export import BatchSpanProcessor\n\n"
        "provider = TracerProvider()\n"
        "provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))\n"
        "trace.set_tracer_provider(provider)\n"
    )


def install(framework: Framework) -> str:
    """The command that installs what it needs beside the framework; empty for nothing, and where a file says it."""
    if framework.language not in TOOLS:
        return ""
    words = [framework.install] if framework.install else []
    if framework.language == "python" and not framework.own_setup:
        words += ["opentelemetry-sdk", f"opentelemetry-exporter-otlp-proto-{_module(framework)}"]
    return " ".join([TOOLS[framework.language], *words]) if words else ""


def turn(framework: Framework) -> str:
    """How a Python program runs one turn of a session; empty where one line of the page says it all."""
    opened = [framework.session]
    if framework.session.startswith("span."):
        opened = [framework.turn, f"    {framework.session}"]
    if framework.language != "python" or not opened[0].startswith("with "):
        return ""
    called = re.match(r"with (\w+)", opened[0])
    wanted = IMPORTS.get(called[1] if called else "")
    needed = [wanted, ""] if wanted and wanted not in framework.program() else []
    return "\n".join([*needed, *opened, TURN])


def page(framework: Framework, seen: str) -> str:
    """The page as MyST Markdown. `seen`: what Spanwise makes of its recording."""
    language = FENCES.get(framework.language, framework.language)
    code = framework.program()
    other = {"grpc": "http/protobuf", "http/protobuf": "grpc"}[framework.protocol]
    exports = framework.exports()
    lines = [f"# {framework.title}", "", NOTE, "", "## Connect it", ""]
    if command := install(framework):
        lines += ["```sh", command, "```", ""]
    elif framework.language not in TOOLS:
        wanted = ", ".join(f"`{each}`" for each in framework.install.split())
        lines += [f"Among the dependencies: {wanted}.", ""]
    if framework.language == "java":
        lines += ["In `application.properties`:", ""]
    lines += ["```sh", *exports, "```", ""] if exports else []
    if code:
        lines += [f"```{language}", code, "```", ""]
    ports = f"Port {PORTS[framework.protocol]} takes {_called(framework.protocol)}"
    others = f"{PORTS[other]} takes {_called(other)}, with an exporter for it"
    apart = "without it each trace is a session of its own"
    session = f"Turns of one conversation become one session with `{framework.session}`; {apart}."
    if around := turn(framework):
        session = (
            f"Run each turn in these lines, with one id for all turns of a conversation; {apart}."
        )
    named = f"`{framework.release}`"
    if "gen_ai.agent.version" not in framework.release:
        named += ", or `gen_ai.agent.version` on the agent's spans,"
    lines += [
        f"{ports}; {others}.",
        "",
        session,
        "",
        *(["```python", around, "```", ""] if around else []),
        f"{named} says which release runs: scores are then kept for each release.",
        "",
        "## What one sees",
        "",
        *([framework.note, ""] if framework.note else []),
    ]
    return "\n".join([*lines, seen, ""])


def _called(protocol: str) -> str:
    return {"grpc": "gRPC", "http/protobuf": "HTTP with protobuf"}[protocol]


def _module(framework: Framework) -> str:
    return {"grpc": "grpc", "http/protobuf": "http"}[framework.protocol]


# --- what one sees ---------------------------------------------------------------------------------------------------


def seen(entries: Mapping[str, Framework]) -> dict[str, str]:
    """What `spanwise inspect` and `evaluate` say of the trace that each page shows."""
    every = [file for each in entries.values() for file in files(each.path())]
    understood = {each["trace_id"]: each for each in _lines("inspect", every)}
    signals: dict[str, list[Mapping[str, Any]]] = {}
    for each in _lines("evaluate", every):
        if each["scope"] == "trace" and each["final"]:
            signals.setdefault(each["trace_id"], []).append(each)
    shown = {name: each.shown() for name, each in entries.items()}
    return {
        name: conversation(understood[trace]) + scores(signals[trace])
        for name, trace in shown.items()
    }


def first_turn(recording: Path) -> str:
    """The id of the trace of the first turn; where nothing says which that is, of the earliest."""
    expected = yaml.safe_load(recording.with_suffix(".expect.yaml").read_text("utf-8"))
    told = expected["turn_list"][0].get("main_trace_id")
    return told or earliest(files(recording))


def earliest(recorded: Sequence[Path]) -> str:
    """The id of the trace that began first."""
    return min(_lines("inspect", recorded), key=lambda each: each["start"])["trace_id"]


def files(recording: Path) -> list[Path]:
    """The spans, and their log records where there are any."""
    logs = recording.with_suffix(".logs.otlp")
    return [recording, logs] if logs.exists() else [recording]


def _lines(command: str, paths: Sequence[Path]) -> list[Mapping[str, Any]]:
    given = [str(each) for each in paths]
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-m", "collector.commands.start", command, *given, "--format", "jsonl"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def conversation(trace: Mapping[str, Any]) -> str:
    """The turn as lines: question, tool calls, answer, and what the spans lack."""
    calls = [
        f"  {each['name']}({_short(json.dumps(each['arguments'], ensure_ascii=False))})\n"
        f"    {'error: ' + _short(each['error']) if each['error'] else _short(each['result'])}"
        for each in trace["tool_calls"]
    ]
    tokens, session = trace["tokens"], trace["session_source"]
    counted = f"{_known(tokens['input'])} in, {_known(tokens['output'])} out"
    lines = [
        f"user       {_short(trace['input'])}",
        *calls,
        f"{trace['agent']}  {_short(trace['output'])}",
        "",
        f"tokens {counted}; session id from {session}; model {', '.join(trace['models']) or 'not exported'}",
        f"not exported: {', '.join(trace['gaps']) or 'nothing'}",
    ]
    return "\n".join(["```text", *lines, "```", ""])


def scores(signals: Iterable[Mapping[str, Any]]) -> str:
    """What the evaluators of traces gave, one a row."""
    rows = [
        f"| `{each['evaluator']}` | {each['outcome'] if each['score'] is None else format(each['score'], '.2f')} "
        f"| {_short(each['explanation']).replace('|', chr(92) + '|')} |"
        for each in sorted(signals, key=lambda each: each["evaluator"])
    ]
    return "\n".join(["", "| evaluator | score | why |", "|---|---|---|", *rows, ""])


def _known(count: int | None) -> str:
    return "not exported" if count is None else str(count)


def _short(value: object) -> str:
    text = " ".join(str("" if value is None else value).split())
    return text if len(text) <= TEXT else text[: TEXT - 1] + "…"


def main(folder: Path) -> None:
    """Write every page."""
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA.parent)
