"""The index of the decisions names each of them once, by its own heading."""

import re

from scripts.site.stage import DOCS

FOLDER = DOCS / "decisions"


def test_every_decision_stands_in_the_index_under_its_heading() -> None:
    listed = re.findall(r"^- \[(.+)\]\((\S+)\)$", (FOLDER / "README.md").read_text(), re.MULTILINE)
    headings = [
        (path.read_text().partition("\n")[0].removeprefix("# "), path.name)
        for path in FOLDER.glob("0*.md")
    ]

    assert sorted(listed) == sorted(headings)
