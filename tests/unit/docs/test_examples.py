"""What pages show is tried: expressions, endpoints with protocols, expectations; and commands behind tables."""

import json
import re
import shlex
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from collector.base.net import exporter_settings
from collector.config.load import load
from collector.receiver.inflate import BY_NAME
from collector.slo.rules import rules
from evaluators.expectations import Expectation
from evaluators.formulas.release_verdict import LOOKS
from evaluators.formulas.second_opinion import opinion_looks
from evaluators.registry import Registry
from scripts.docs import ROOT
from scripts.research.ranked_sessions import auroc, runs, table
from scripts.research.second_opinions import JUDGES, USUAL, looks, seeded
from tests.support import agents
from tests.support.command import spanwise
from tests.support.promtool import run
from tests.support.table import for_each

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
RULES = [rule for group in rules(0.9) for rule in group["rules"]]
CODE = re.compile(r"^```\w*\n(.*?)^```|(?<!`)`([^`\n]+)`", re.MULTILINE | re.DOTALL)
FAMILY = re.compile(r"\b(?:spanwise_[a-z_]+[a-z]|agent:[a-z_]+:[a-z0-9_]+)\b")
COMPUTES = re.compile(r"[<>=]=|[<>]|\boffset\b|\bby \(|\w\(|\[\d+[smhd]\]|[*/+-] ")
SELECTS = re.compile(r'\{[a-z_]+(?:=~?|!=|!~)"')


def code(page: Path) -> Iterator[str]:
    """Every code block and code span."""
    for block, span in CODE.findall(page.read_text()):
        yield block or span


def plain(expr: str) -> str:
    """Without what does not count in PromQL."""
    return re.sub(r"\s+", "", expr)


def expressions(page: Path) -> list[str]:
    """What computes with a family: in a rule its `expr`, elsewhere the whole text."""
    found: list[str] = []
    for text in code(page):
        for line in re.findall(r"expr: (.*)", text) or ([] if "\n" in text else [text]):
            shown = re.sub(r"\s+#.*", "", line).strip()
            if FAMILY.search(shown) and COMPUTES.search(re.sub(r"\{.*?\}", "", shown)):
                found.append(shown)
    return found


@for_each("page", PAGES)
def test_what_a_page_computes_is_part_of_a_rule(page: Path) -> None:
    known = [plain(rule["expr"]) for rule in RULES]

    foreign = [e for e in expressions(page) if not any(plain(e) in each for each in known)]

    assert foreign == [], "show an expression of `spanwise slo`, or say it in words"


@pytest.mark.process
def test_every_selector_and_expression_parses(tmp_path: Path) -> None:
    found = {each for page in PAGES for each in expressions(page)} | {
        text
        for page in PAGES
        for text in code(page)
        if FAMILY.match(text) and SELECTS.search(text) and "\n" not in text
    }
    assert len(found) > 20
    file: list[dict[str, Any]] = [
        {"record": f"page:expr:{number}", "expr": expr} for number, expr in enumerate(sorted(found))
    ]
    (tmp_path / "pages.yml").write_text(yaml.safe_dump({"groups": [{"name": "p", "rules": file}]}))

    done = run("check", "rules", "pages.yml", folder=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_table_of_alerts_says_what_the_rules_say() -> None:
    page = (ROOT / "docs" / "alerting.md").read_text()
    rows = re.findall(
        r"^\| \[(\w+)\]\(#(\w+)\) \| ([^|]+) \| [^|]+ \| (yes)? ?\|$", page, re.MULTILINE
    )
    without = {rule.get("alert") for group in rules() for rule in group["rules"]}

    assert {name for name, *_ in rows} == {rule.get("alert") for rule in RULES} - {None}
    for name, anchor, severity, objective in rows:
        (rule,) = (each for each in RULES if each.get("alert") == name)
        assert severity.split(";")[0] in rule.get("labels", {})["severity"]
        assert anchor == name.lower()
        assert bool(objective) == (name not in without)


TEXTS = [
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "helm").rglob("*.txt"),
    *(ROOT / "helm").rglob("*.md"),
    ROOT / "README.md",
    ROOT / "compose.yaml",
]


def test_every_endpoint_is_beside_its_protocol_and_one_port_beside_the_other() -> None:
    lines = [line for text in TEXTS for line in text.read_text().splitlines()]
    named = [each for each in lines if "OTEL_EXPORTER_OTLP_ENDPOINT=" in each]

    assert [each for each in named if "OTEL_EXPORTER_OTLP_PROTOCOL=" not in each] == []
    assert len(named) > 10
    for folder in ("agents", "frameworks"):
        for page in (ROOT / "docs" / folder).glob("*.md"):
            text = page.read_text()
            assert ("4317" in text) == ("4318" in text), page


@for_each(
    ("host", "tls", "shown"),
    [
        ("127.0.0.1", False, "http://127.0.0.1"),
        ("0.0.0.0", False, "http://127.0.0.1"),
        ("::1", True, "https://[::1]"),
    ],
)
def test_both_protocols_are_named_with_their_ports(host: str, *, tls: bool, shown: str) -> None:
    endpoint, protocol = f"OTEL_EXPORTER_OTLP_ENDPOINT={shown}:", "OTEL_EXPORTER_OTLP_PROTOCOL="

    assert list(exporter_settings(host=host, grpc=4317, http=4318, tls=tls)) == [
        f"{endpoint}4317 {protocol}grpc",
        f"{endpoint}4318 {protocol}http/protobuf",
    ]


def test_the_collectors_page_shows_both_ports_and_no_zstd_over_grpc() -> None:
    page = (ROOT / "docs" / "collector.md").read_text()
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)

    grpc, http = (yaml.safe_load(shown)["exporters"][f"{n}/spanwise"] for n in ("otlp", "otlphttp"))

    assert (grpc["endpoint"][-5:], grpc["compression"]) == (":4317", "gzip")
    assert (http["endpoint"][-5:], http["compression"] in BY_NAME) == (":4318", True)


PAGE = (ROOT / "docs" / "expectations.md").read_text()
BLOCKS: list[str] = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
RECORDING = ROOT / "tests" / "data" / "captures" / "strands" / "retry.otlp"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the page, under the names that their first lines give."""
    for block in BLOCKS:
        (name,) = re.findall(r"^# (\S+\.yaml)", block)
        with (tmp_path / name).open("a") as file:
            file.write(block)
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings" / RECORDING.name).write_bytes(RECORDING.read_bytes())
    return tmp_path


def test_its_settings_are_loaded_as_they_stand(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)

    config = load([Path("spanwise.yaml")], {"OPENAI_API_KEY": "sk-test"}, [])

    assert config.judge.model == "gpt-4o-mini"
    assert config.judge.budget.usd_per_day == 2
    assert set(config.judges) == {"professional_tone", "goal_reached"}


@pytest.mark.process
def test_its_expectations_are_met_by_the_recording_that_they_are_about(folder: Path) -> None:
    (folder / "only.yaml").write_text("expectations: expectations.yaml\n")
    (shown,) = re.findall(r"^spanwise (evaluate .*)$", PAGE, re.MULTILINE)
    words = [each.replace("spanwise.yaml", "only.yaml") for each in shlex.split(shown)]

    done = spanwise(*words, "--format", "jsonl", cwd=folder)

    assert done.code == 0, done.err
    signals = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    found = {each["evaluator"]: each["score"] for each in signals if each["scope"] == "trace"}
    assert found["regex"] == found["contains"] == found["tool_expectations"] == 1.0
    assert found["exact_match"] == 0.0


@pytest.mark.process
def test_an_answer_that_differs_fails_the_command(folder: Path) -> None:
    entries = yaml.safe_load((folder / "expectations.yaml").read_text())
    entries[0]["regex"] = "CP-0000"
    (folder / "expectations.yaml").write_text(yaml.safe_dump(entries))
    (folder / "only.yaml").write_text("expectations: expectations.yaml\n")

    under = ("--config", "only.yaml", "--fail-under", "regex=1")
    assert spanwise("evaluate", "recordings/", *under, cwd=folder).code == 1


def test_every_field_of_an_expectation_and_its_evaluators_are_named() -> None:
    linked = set(re.findall(r"\[`(\w+)`\]\(evaluators\.md#", PAGE))

    assert set(Expectation.__struct_fields__) <= set(re.findall(r"`(\w+)`", PAGE))
    assert linked <= {spec.name for spec in Registry.discover()}


def test_sessions_that_loop_rank_below_those_that_do_not(tmp_path: Path) -> None:
    turns = [
        agents.Turn(service="shop", session=f"s-{n}", number=n, loops=n > 9 and n % 2 == 0)
        for n in range(16)
    ]
    with (tmp_path / "runs.otlp").open("wb") as file:
        for request in agents.requests(turns):
            file.write(struct.pack(">I", len(request)) + request)
    labels = {
        each.session: {"success": not each.loops, "set": "a", "domain": "d", "task_id": "1"}
        for each in turns
    }
    (tmp_path / "labels.json").write_text(json.dumps(labels))

    found = runs(tmp_path)

    assert sum("work_baseline" in each.scores for each in found) == 6
    assert "| a | 16 | 3 | 38%, " in table(found)
    assert (auroc([(each.combined, each.success) for each in found]) or 0.0) > 0.9


@pytest.mark.parametrize("kind", JUDGES)
def test_looks_at_all_streams_at_once_are_those_of_the_service(kind: str) -> None:
    """The last streams are those of a judge that says the same about all sessions, and of one that finds all lost."""
    rng, judge = seeded(kind), JUDGES[kind](0.69)
    earlier, later = (
        judge(rng, rng.random((12, count)) < failing)
        for count, failing in ((100, USUAL), (LOOKS[-1], 0.5))
    )
    earlier[-2:] = 100
    later[-2], later[-1] = 100, 0

    for found, before, since in zip(
        looks(earlier, later), earlier.tolist(), later.tolist(), strict=True
    ):
        for each, of_service in zip(found, opinion_looks(since, before), strict=True):
            assert each == pytest.approx(of_service, abs=1e-12)
