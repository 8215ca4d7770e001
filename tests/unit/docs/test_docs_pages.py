"""Pages say what is: the generated ones, their lists of records, metrics, limits and decisions, prices and links."""

import re
from functools import reduce
from pathlib import PurePosixPath
from pkgutil import resolve_name
from typing import get_args

import pytest

from collector.config.tree import Config, JudgeMore
from collector.records.traces import TracesTopic
from collector.watch.second_opinions import MOST
from evaluators.registry import Registry
from scripts import docs
from scripts.site.stage import linked
from tests.support.declared_families import declared_families
from tests.support.setting_tree import every_setting
from tests.support.table import for_each

DOCS = docs.ROOT / "docs"
TESTS = docs.ROOT / "tests"
PAGES = docs.pages()
OPERATE, JUDGES = ((DOCS / name).read_text() for name in ("operate.md", "judges.md"))
SECURITY = (docs.ROOT / "SECURITY.md").read_text()


# --- generated pages: `python -m scripts.docs` writes a stale one again ---


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_page_is_not_stale(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == PAGES[name], "run `python -m scripts.docs`"


def test_every_evaluator_has_its_document_on_its_page() -> None:
    for spec in Registry.discover():
        if "/" not in spec.name:
            assert f"### `{spec.name}`\n\nDefined by: {spec.source}.\n" in PAGES["evaluators.md"]


def test_every_setting_is_on_its_page() -> None:
    listed = {s.path for s in docs.settings_of((docs.ROOT / "spanwise.yaml").read_text("utf-8"))}
    for setting in every_setting():
        parts = setting.path
        assert listed & {".".join(parts[:end]) for end in range(1, len(parts) + 1)}, setting.name


# --- docs/architecture.md, docs/decisions and docs/operate.md ---


def test_every_kind_of_record_on_traces_is_named() -> None:
    text = (DOCS / "architecture.md").read_text("utf-8")
    (row,) = re.findall(r"^\| `traces` \| session key \| (.*?) \|", text, re.MULTILINE)
    kinds = {each.__struct_config__.tag for each in get_args(TracesTopic)}

    assert set(re.findall(r"`(\w+)`", row)) - {"spans"} == kinds
    number = {8: "eight", 9: "nine", 10: "ten", 11: "eleven", 12: "twelve"}[len(kinds)]
    assert f"Topic `traces` has {number} kinds of record" in text


def test_the_index_of_the_decisions_names_each_once_by_its_heading() -> None:
    folder = DOCS / "decisions"
    listed = re.findall(r"^- \[(.+)\]\((\S+)\)$", (folder / "README.md").read_text(), re.MULTILINE)

    assert sorted(listed) == sorted(
        (path.read_text().partition("\n")[0].removeprefix("# "), path.name)
        for path in folder.glob("0*.md")
    )


def test_every_metric_is_explained_and_no_other() -> None:
    families = {name.removesuffix("_count") for name in declared_families()}

    assert set(re.findall(r"spanwise_[a-z_]+", OPERATE)) == families


def test_every_test_that_the_page_of_operation_names_is_there() -> None:
    named = set(re.findall(r"`((?:\w+/)+test_\w+\.py)`", OPERATE))

    assert len(named) > 8
    assert {each for each in named if not (TESTS / each).is_file()} == set()


# --- SECURITY.md: who reaches which port, and every limit with its number ---

LIMITS = SECURITY.partition("## Limits")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| ([^|]+) \| ([\d.,]+)(?: (\w+))? \| `([\w.]+)` \|$", LIMITS, re.MULTILINE)


@pytest.mark.parametrize("port", ["4317", "4318", "4390"])
def test_every_port_says_who_may_reach_it(port: str) -> None:
    row = rf"^\| {port} \(`[\w.]+`\) \| [^|]+ \| [^|]{{20,}} \|$"
    assert re.search(row, SECURITY, re.MULTILINE)


def test_every_row_of_the_limits_is_read() -> None:
    assert len(ROWS) == sum(each.startswith("| ") for each in LIMITS.splitlines()) - 1 >= 10


@for_each(("what", "number", "unit", "where"), ROWS)
def test_a_limit_is_what_the_code_keeps_to(what: str, number: str, unit: str, where: str) -> None:
    """`where` is a setting, whose default it is, or the full name of a constant."""
    is_constant = where.startswith(("collector.", "evaluators."))
    kept = resolve_name(where) if is_constant else reduce(getattr, where.split("."), Config())
    factor = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}.get(unit, 1)

    assert float(number.replace(",", "")) * factor == kept, what


# --- docs/judges.md: a price is the sessions of docs/evidence.md times the price of one ---

SIMULATED = re.findall(
    r"^\| (?:graded|pass or fail) \| (\S+) \|.*\| (\d+), (\d+), (\d+) \|$",
    (DOCS / "evidence.md").read_text(),
    re.MULTILINE,
)
"""AUROC, and the sessions asked about in drops to 80 % and 50 % failing, and where nothing is lost."""


def asked(column: int, auroc: str = "") -> tuple[int, int]:
    found = [int(row[column]) for row in SIMULATED if auroc in row[0]]
    return min(found), max(found)


NEW = JudgeMore().new_version or 0
SESSIONS = {
    "a sample of .05": (48, 48),
    "a release": (NEW, 2 * NEW),
    "AUROC of .93": asked(1, "0.93"),
    "a judge with .69": asked(1, "0.69"),
    "nothing is lost": asked(3),
    "however many drops": (MOST, MOST),
}


@for_each("what", SESSIONS)
def test_a_price_is_that_of_its_sessions(what: str) -> None:
    (row,) = (each for each in JUDGES.splitlines() if each.startswith("|") and what in each)
    *_, sessions, usd, _ = (each.strip() for each in row.split("|"))
    least, most = SESSIONS[what]
    (low, high), *_ = re.findall(r"costs (0\.\d+) to (0\.\d+) USD", JUDGES)

    assert sessions.removeprefix("at most ") == (str(most) if least == most else f"{least}-{most}")
    assert usd == f"{least * float(low):.1f}-{most * float(high):.1f}"


# --- the site: links that would leave it become names of files ---


@for_each(
    ("page", "written", "read"),
    [
        ("docs/a.md", "[cost](cost.md#disk)", "[cost](cost.md#disk)"),
        ("docs/a.md", "[Helm](../helm/README.md#install)", "[Helm](kubernetes.md#install)"),
        ("docs/decisions/1.md", "[limits](../../SECURITY.md)", "[limits](../security.md)"),
        ("docs/a.md", "[this](#there)", "[this](#there)"),
        ("docs/a.md", "[that](https://a.com/x.md)", "[that](https://a.com/x.md)"),
        ("docs/a.md", "the [schema](../collector/x.json)", "the schema (`collector/x.json`)"),
        ("docs/a.md", "the [helm/Chart.yaml](../helm/Chart.yaml)", "the `helm/Chart.yaml`"),
        ("docs/a.md", "[reasons](decisions)", "[reasons](decisions/index.md)"),
        ("docs/decisions/1.md", "[cost](../cost.md)", "[cost](../cost.md)"),
        ("docs/decisions/1.md", "[it](../../collector/a.py#L1)", "it (`collector/a.py`)"),
        ("helm/README.md", "[operate](../docs/operate.md#kafka)", "[operate](operate.md#kafka)"),
        ("helm/README.md", "[rules](spanwise/values.yaml)", "rules (`helm/spanwise/values.yaml`)"),
        ("SECURITY.md", "[why](docs/decisions/1.md)", "[why](decisions/1.md)"),
    ],
)
def test_a_link_stays_within_the_site(page: str, written: str, read: str) -> None:
    assert linked(f"see {written}", PurePosixPath(page)) == f"see {read}"


def test_every_test_that_a_page_names_exists() -> None:
    named = re.compile(r"\b(?:bench|chart|conformance|e2e|fuzz|golden|property|unit)/[\w/]+\.py\b")
    pages = [*DOCS.rglob("*.md"), *docs.ROOT.glob("*.md")]
    for name in {each for page in pages for each in named.findall(page.read_text("utf-8"))}:
        assert (TESTS / name).exists(), name
