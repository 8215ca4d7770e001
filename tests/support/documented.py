"""What README.md and the pages of docs name: command lines, options, endpoints, variables and settings."""

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from tests.support.service import ROOT

PAGES = (
    ROOT / "README.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if "decisions" not in p.parts),
)
_FENCE = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(?:^|(?<=[\s:\d]))/[a-z][\w/{}.*-]*(?:\?[^\s\"']*)?")
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_VARIABLE = re.compile(r"\bSPANWISE_[A-Z_]+")
_SETTING = re.compile(r"^[a-z_]+(?:\.[a-z_]+)+$")
_COMMAND = re.compile(r"(?:^|(?<=[\s/]))spanwise ([a-z].*)")


class Named(NamedTuple):
    """A piece of code that a page shows."""

    page: str
    text: str


@lru_cache(maxsize=1)
def code() -> tuple[Named, ...]:
    """Every code span, and every line of a block."""
    return tuple(Named(page.name, each) for page in PAGES for each in _pieces(page.read_text()))


def _pieces(text: str) -> Iterator[str]:
    for block in _FENCE.findall(text):
        yield from block.replace("\\\n", " ").splitlines()
    yield from _CODE.findall(_FENCE.sub("", text))


def command_lines() -> list[tuple[str, ...]]:
    """The words behind `spanwise`, without what the shell keeps for itself."""
    shown = {found[1] for each in code() if (found := _COMMAND.search(each.text))}
    return sorted({_words(line) for line in shown})


def _words(line: str) -> tuple[str, ...]:
    words = shlex.split(line, comments=True)
    ends = [at for at, word in enumerate(words) if word in {">", "|", ";", "&&"}]
    return tuple(words[: min(ends, default=len(words))])


def options() -> set[str]:
    """Of whatever program."""
    return _found(_OPTION)


def variables() -> set[str]:
    """Whose names begin with ours."""
    return _found(_VARIABLE)


def paths() -> set[str]:
    """What begins with a slash: endpoints with their parameters, and files."""
    return _found(_PATH)


def settings(sections: Mapping[str, object]) -> set[str]:
    """Names with a dot whose first word is a section of the configuration."""
    return {name for name in _found(_SETTING) if name.partition(".")[0] in sections}


def _found(pattern: re.Pattern[str]) -> set[str]:
    return {name for _, text in code() for name in pattern.findall(text)}
