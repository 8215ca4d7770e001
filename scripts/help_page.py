"""The page's own help: docs/alerting.md as a template of the page. `python -m scripts.docs` writes it."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

TEMPLATE = Path(__file__).parents[1] / "collector" / "api" / "page" / "help.html"
SOURCE = Path(__file__).parents[1] / "docs" / "alerting.md"
_HEAD = """\
{{# Made by `python -m scripts.docs` of docs/alerting.md. #}}
{{% extends "base.html" %}}
{{% block title %}}Help · Spanwise{{% endblock %}}
{{% block main %}}
{{% raw %}}
<div class="prose">
{body}</div>
{{% endraw %}}
{{% endblock %}}
"""


def help_template() -> str:
    """The template. Links to other pages of the documentation are their texts: only this one is served."""
    markdown = MarkdownIt("commonmark").enable("table")
    tokens = markdown.parse(SOURCE.read_text(encoding="utf-8"))
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor(tokens[at + 1].content))
        if token.children:
            token.children = [*_served(token.children)]
    body = markdown.renderer.render(tokens, markdown.options, {})
    # A name of an alert breaks between its words, on a telephone.
    body = re.sub(r"(?<=[a-z])(?=[A-Z][a-zA-Z]*</a></td>)", "<wbr>", body)
    return _HEAD.format(
        body=body.replace("<table>", '<div class="sheet"><table>').replace(
            "</table>", "</table></div>"
        )
    )


def anchor(heading: str) -> str:
    """What stands behind `#` in an address, as on the site."""
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


def _served(tokens: Sequence[Token]) -> Iterator[Token]:
    is_kept = True
    for each in tokens:
        if each.type == "link_open":
            is_kept = str(each.attrGet("href")).startswith(("#", "http"))
        if is_kept or each.type not in ("link_open", "link_close"):
            yield each
