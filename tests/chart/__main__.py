"""`make chart`: a table of what was rendered and how each check of it went; exit 1 when something is wrong."""

import shutil
import sys

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from scripts.chart.examples import names
from scripts.chart.files import files
from scripts.chart.places import HELM
from scripts.chart.readme import readme
from tests.chart.examples import CHECKS, REWRITE, Found, objects, rules
from tests.chart.support import refusal
from tests.chart.test_refusals import REFUSED

MEANING = """\
golden     files that Helm renders as they are committed
lint       Helm's linter, strict
1.30 ...   objects that this Kubernetes accepts, unknown fields refused
CRDs       custom resources that fit their definitions
rules      alerts that promtool accepts
settings   containers whose settings `spanwise validate` accepts
upgrade    objects of version 0.1.0 whose fixed fields an upgrade keeps"""


def main() -> int:
    """Run every check of every example."""
    console = Console(width=max(110, Console().width))
    table = Table("example", "objects", *CHECKS, box=SIMPLE)
    wrong = [
        f"{path} is stale: {REWRITE}"
        for path, text in (files() | readme()).items()
        if not (HELM / path).exists() or (HELM / path).read_text(encoding="utf-8") != text
    ]
    promtool = shutil.which("promtool") is not None
    for example in names():
        cells: list[str] = []
        for name, check in CHECKS.items():
            if check is rules and not promtool:
                cells.append("[yellow]not run[/]")
                continue
            found = check(example)
            wrong += [f"{example}, {name}: {each}" for each in found.problems]
            cells.append("[red]wrong[/]" if found.problems else _seen(found))
        table.add_row(example, str(len(objects(example))), *cells)
    console.print(table)
    console.print(MEANING, markup=False, highlight=False)
    accepted = [values for values, reason in REFUSED if reason not in refusal(values)]
    wrong += [f"not refused, or in other words: {values}" for values in accepted]
    console.print(f"{len(REFUSED) - len(accepted)} of {len(REFUSED)} wrong values refused by name")
    if not promtool:
        wrong.append("promtool is not installed (Debian package `prometheus`): no rule was checked")
    for each in wrong:
        console.print(each, style="red", markup=False, highlight=False)
    console.print("[red]not good[/]" if wrong else "all good; no cluster was asked")
    return 1 if wrong else 0


def _seen(found: Found) -> str:
    return found.looked_at if found.looked_at == "-" else f"[green]✓[/] {found.looked_at}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
