"""Pages have the field's words and short sentences (CONTRIBUTING.md); a number in the code has its reason beside it."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.table import for_each

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    path
    for folder in ("docs", "docs/outlets", "docs/agents", "docs/frameworks", "collector/api/page")
    for path in (ROOT / folder).iterdir()
    if path.suffix in {".md", ".html"}
) + [ROOT / name for name in ("README.md", "helm/README.md", "SECURITY.md")]
CODE = [
    path for name in ("collector", "evaluators", "spanwise") for path in (ROOT / name).rglob("*.py")
]
INSTEAD = {
    r"mend(?:ed|s|ing)?": "fix, fixed",
    r"anew": "again",
    r"thrice": "three times",
    r"nobody": "no one, or name who",
    r"as ever": "as before",
    r"than ever": "than before, than in its own past",
    r"whither|whence|thereof|hither": "where",
    r"by why": "by reason",
    r"(?<!there )(?:is|was) no (?!longer|more|better|later|less|way|one|matter|need|doubt)[a-z]+": "is not a ...",
    r"(?-i:(?<!there )(?<!There )\b(?:is|are) none\b)": "there is none, is not one",
}
"""What is written in place of a word."""
CHART = [
    *(ROOT / "helm/spanwise").glob("values*.yaml"),
    *(ROOT / "helm/spanwise/templates").iterdir(),
    *(ROOT / "helm/spanwise/examples").rglob("NOTES.txt"),
    *(ROOT / "helm/spanwise/examples").rglob("values.yaml"),
]
SHORT = [
    *(path for path in PAGES if path.suffix == ".md"),
    *sorted((ROOT / "docs/decisions").iterdir()),
    *CHART,
    *(
        ROOT / name
        for name in ("CONTRIBUTING.md", "helm/mixin/README.md", "helm/spanwise/README.md")
    ),
]
LONGEST = 35
"""Words of a sentence."""
_CODE = re.compile(
    r"```.*?```|<script.*?</script>|<style.*?</style>|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL
)


@cache
def words(path: Path) -> str:
    return _CODE.sub(" ", path.read_text("utf-8"))


@pytest.mark.parametrize("word", INSTEAD)
def test_pages_and_code_have_the_fields_words(word: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in [*PAGES, *CODE]
        for match in re.finditer(rf"\b(?:{word})\b", words(path), re.IGNORECASE)
    ]

    assert found == [], f"write {INSTEAD[word]}"


@for_each("page", [str(path.relative_to(ROOT)) for path in SHORT])
def test_no_sentence_is_too_long_to_be_read_at_once(page: str) -> None:
    """Without tables and headings, and of YAML only comments; a link counts with its words, code as one."""
    text = words(ROOT / page)
    if page.endswith((".yaml", ".tpl")):
        comments = (re.search(r"(?:^|\s)#\s?(?:-- )?(.*)", line) for line in text.splitlines())
        text = "\n".join(found[1] if found else "" for found in comments)

    assert [each for each in sentences(text) if len(each.split()) > LONGEST] == []


def sentences(text: str) -> list[str]:
    """Those of each paragraph or item of a list, over the ends of its lines."""
    plain = re.sub(r"^(?:\||#).*$", "", text, flags=re.MULTILINE)
    plain = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "x", plain))
    paragraphs = re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s", plain)
    return [each for text in paragraphs for each in re.split(r"(?<=[.!?:])\s", text)]


def is_number(value: ast.expr | None) -> bool:
    match value:
        case ast.Constant(value=constant):
            return isinstance(constant, int | float) and not isinstance(constant, bool)
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.Tuple(elts=[_, *_] as members):
            return all(map(is_number, members))
        case _:
            return False


def bare_numbers(source: str) -> Iterator[str]:
    """Constants of a module that are numbers, without a word. One docstring holds for those right above it."""
    lines = source.splitlines()
    waiting: list[str] = []
    module = ast.parse(source)
    for statement, following in pairwise([*module.body, ast.Pass()]):
        is_constant = isinstance(statement, ast.Assign | ast.AnnAssign)
        if is_constant and is_number(statement.value):
            target = ast.unparse(
                statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            )
            above = lines[statement.lineno - 2].strip()
            has_comment = "  # " in lines[statement.lineno - 1] or above.startswith("#")
            if target.strip("_()").isupper() and not has_comment:
                waiting.append(target)
        if isinstance(following, ast.Assign | ast.AnnAssign):
            continue
        match following:
            case ast.Expr(value=ast.Constant(value=str())) if is_constant:
                waiting.clear()
            case _:
                yield from waiting
                waiting.clear()


def test_every_number_says_why() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in CODE
        for name in bare_numbers(path.read_text(encoding="utf-8"))
    }

    assert found == set()
