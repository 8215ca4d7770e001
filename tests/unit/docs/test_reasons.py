"""A number has its reason beside it: a docstring, or a comment."""

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[3]
FILES = sorted(
    path for room in ("collector", "evaluators", "spanwise") for path in (ROOT / room).rglob("*.py")
)


def is_number(value: ast.expr | None) -> bool:
    match value:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float()):
            return True
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
        for path in FILES
        for name in bare_numbers(path.read_text(encoding="utf-8"))
    }

    assert found == set()
