"""Each command line, option and variable that a page names is taken; each option at its type's edges is no fault."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main

from collector.commands.cli import COMMANDS, assemble, main
from collector.config.load import load
from collector.config.tree import Config
from tests.support import documented
from tests.support.documented_edges import NUMBERS, TEXTS, TIMES
from tests.support.examples import IS_LONG
from tests.support.table import for_each
from tests.unit.commands.test_compare import recorded

NOWHERE = "http://127.0.0.1:9"
WORDS = ("shop", "\udcff", "a=b", "--", "\r\n", *TEXTS)
FILES = ("made", "", ".", "gone/gone", "/dev/null", "/dev/full", "\udcff", "x" * 5_000, "-")
NAMED = ("confidence=.5", "confidence", "=", "=1", "none_such=1", "confidence=nan", "confidence=x")
SETTINGS = (
    "workers=1",
    "workers",
    "=",
    "workers=0",
    "none.such=1",
    "a..b=1",
    "workers={",
    "\udcff=1",
)
URLS = (NOWHERE, "", "x", "http://", "file:///etc/passwd", "http://[::", f"{NOWHERE}/\r\nx: y")
EDGES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("--agent", "--baseline", "--candidate", "--service"), WORDS),
    **dict.fromkeys(("--config", "--csv", "--junit", "--output", "--summary", "--with"), FILES),
    **dict.fromkeys(("--page", "--runbook", "--url"), URLS),
    "--evaluator": ("confidence=.5", *WORDS, *NAMED),
    "--evaluators": ("confidence", ",", *WORDS),
    "--fail-under": NAMED,
    "--format": ("table", "json", "jsonl", "github", *WORDS),
    "--inconclusive": ("pass", *WORDS),
    "--limit": ("1", *NUMBERS),
    "--margin": (".1", *NUMBERS),
    "--objective": (".9", *NUMBERS),
    "--plugin": ("made.py", *FILES),
    "--set": SETTINGS,
    "--since": TIMES,
    "--token": ("a-secret-of-16-or-more", *WORDS),
    "--traces": ("1", *NUMBERS),
    "--wait": ("0s", *(each for each in TIMES if each != "24h")),
    **dict.fromkeys(("--connect", "--failed", "--keep", "--no-quality", "--test"), ()),
}
"""Of each option of ours; the first is one that some command takes, and a switch has none."""
OTHERS: Mapping[str, str] = {
    "--api-key": "vLLM's",
    **dict.fromkeys(("--bootstrap-server", "--from-beginning", "--property", "--topic"), "Kafka's"),
    **dict.fromkeys(("--build", "--profile"), "docker compose's"),
    "--build-arg": "docker build's",
    **dict.fromkeys(("--certificate-identity", "--certificate-oidc-issuer"), "cosign's"),
    **dict.fromkeys(("--continue", "--input-format", "--resume"), "a coding agent's"),
    **dict.fromkeys(("--enable-feature", "--storage"), "Prometheus's"),
    "--features": "cargo's",
    "--image": "make release's",
    **dict.fromkeys(("--follow", "--max-count", "--short", "--only"), "a shell's"),
    "--require-hashes": "pip's",
    **dict.fromkeys(("--cancelled", "--external", "--labels"), "of scripts.research"),
}
VARIABLES = {"SPANWISE_ADMIN__PORT": "4391"}
OF_THE_TESTS = {"SPANWISE_CAPTURES", "SPANWISE_LOG_CAPTURES"}
"""Which the service passes over."""
OF_COMPOSE = "SPANWISE_ADMIN_TOKENS"
"""Which compose.yaml hands on as the variable of the setting."""
NOT_SETTINGS = {
    "evaluators.providers.scripted": "a module",
    "judge.again": "a field of a verdict",
    "judge.cost_usd": "a signal's field",
}
ENDLESS = {"run", "demo"}
"""They serve until they are stopped: here their lines are only read, and tests/e2e starts them."""
BASE: Mapping[str, Sequence[str]] = {
    "cases": ("--url", NOWHERE),
    "compare": ("--url", NOWHERE, "--service", "shop", "--candidate", "1"),
    "config": ("print",),
    "evaluate": ("made.otlp", "--evaluators", "confidence", "--set", "embedder.kind=none"),
    "inspect": ("made.otlp",),
    "doctor": ("made.otlp", "--set", "embedder.kind=none"),
}


def parameters(*words: str) -> dict[str, Any]:
    """The options of a command, by name."""
    command: Any = typer.main.get_command(assemble(words))
    for word in words:
        command = command.commands[word]
    return {
        name: each
        for each in command.params
        for name in each.opts
        if name.startswith("--") and name != "--help"
    }


LEAVES: tuple[tuple[str, ...], ...] = (
    ("config", "print"),
    ("config", "schema"),
    *((each,) for each in COMMANDS if each != "config"),
)
OPTIONS: dict[tuple[str, ...], dict[str, Any]] = {words: parameters(*words) for words in LEAVES}


def test_every_option_of_ours_has_its_edges() -> None:
    assert {name for each in OPTIONS.values() for name in each} == {*EDGES}


def test_every_option_of_the_pages_is_ours_or_known_to_be_anothers() -> None:
    assert documented.options() - EDGES.keys() == OTHERS.keys()


@for_each("line", documented.command_lines())
def test_every_line_of_the_pages_is_taken(line: tuple[str, ...]) -> None:
    name, *behind = line
    command: Any = typer.main.get_command(assemble(line))
    if not behind and name in {"evaluate", "inspect"}:  # the sentence around it says of what
        behind = ["recordings/"]

    context = command.commands[name].make_context(name, behind)

    assert context.params is not None


def test_every_variable_of_the_pages_is_a_setting() -> None:
    assert documented.variables() == {*VARIABLES, *OF_THE_TESTS, OF_COMPOSE}
    assert f"${{{OF_COMPOSE}:-" in (documented.ROOT / "compose.yaml").read_text()
    assert load([], dict.fromkeys(OF_THE_TESTS, "x"), []) == Config()
    assert load([], VARIABLES, []).admin.port == 4391


def test_every_setting_of_the_pages_is_one() -> None:
    unknown = {each for each in documented.settings(Config.model_fields) if not _is_setting(each)}

    assert unknown == NOT_SETTINGS.keys()


def _is_setting(name: str) -> bool:
    at: Any = Config
    for part in name.split("."):
        fields: Mapping[str, Any] = getattr(at, "model_fields", {})
        if part not in fields:
            return False
        members = [
            each for each in get_args(fields[part].annotation) if hasattr(each, "model_fields")
        ]
        at = members[0] if members else fields[part].annotation
    return True


PLUGIN = "import spanwise\n\n@spanwise.evaluator(version='1')\ndef polite(trace):\n    return 1.0\n"


def lines(words: tuple[str, ...]) -> Iterator[list[str]]:
    """Each option at each edge, all at once in both orders, and every two in `make soak`."""
    start = [*words, *BASE.get(words[0], ())[len(words) - 1 :]]
    given = {name: EDGES[name] for name in OPTIONS[words]}
    for name, edges in given.items():
        yield from ([*start, name, edge] for edge in edges)
        if not edges:
            yield [*start, name]
    for one, two in itertools.combinations(given, 2) if IS_LONG else ():
        yield [*start, one, *given[one][:1], two, *given[two][:1]]
    whole = [[name, *edges[:1]] for name, edges in given.items()]
    yield [*start, *itertools.chain.from_iterable(whole)]
    yield [*start, *itertools.chain.from_iterable(reversed(whole))]
    yield [*start, "--none-such"]


def tried() -> Iterator[Any]:
    """The commands that end; a plug-in of theirs is asked in a process of its own."""
    for words, options in OPTIONS.items():
        if words[0] not in ENDLESS:
            marks = [pytest.mark.process] if "--plugin" in options else []
            yield pytest.param(words, marks=marks, id=" ".join(words))


@pytest.mark.parametrize("words", [*tried()])
def test_no_option_at_its_edge_is_a_fault(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path / "made.otlp", "1", fails=True, sessions=1)
    (tmp_path / "made.py").write_text(PLUGIN)
    for line in lines(words):
        (tmp_path / "made").write_text("")

        code = main(line)

        said = capsys.readouterr()
        shown = [each[:60] for each in line]
        assert code in {0, 1, 2, 3}, shown
        assert code == 0 or said.err or said.out, shown
        assert "Traceback" not in said.err + said.out, shown
