"""Every PromQL expression that a page shows is one of the rules': what people copy is what the tests run."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from collector.slo.rules import rules
from tests.support.promtool import run
from tests.support.table import for_each

ROOT = Path(__file__).parents[3]
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
