"""Every page of an agent or a framework that has a recording shows a small picture of its trace."""

import re

import pytest

from scripts.doc_pictures import FOLDER, WIDTH, shown
from scripts.frameworks import ROOT, frameworks
from scripts.webp import SIZE
from tests.support.table import for_each

FOLDER_SIZE = 2_200_000
"""Bytes: every clone has them; about 58 KB for each page of a framework or an agent."""
IMAGE = re.compile(r"!\[([^\]]*)\]\(\.\./pictures/([\w-]+)\.webp\)")
SHOWN = re.compile(r"!\[([^\]]*)\]\(([\w/-]+\.webp)\)")
PAGES = {
    path.stem: path
    for folder in ("agents", "frameworks")
    for path in (ROOT / "docs" / folder).glob("*.md")
}
WANTED = sorted(shown())


def test_every_framework_and_agents_with_examples_are_among_them() -> None:
    assert {*frameworks(), "claude-code", "codex", "sdk-log-events"} <= set(WANTED)


@for_each("name", WANTED)
def test_a_page_with_a_recording_shows_its_picture_and_says_what_is_on_it(name: str) -> None:
    ((alt, picture),) = IMAGE.findall(PAGES[name].read_text("utf-8"))

    assert picture == name, "python -m scripts.doc_pictures"
    assert len(alt.split()) > 8


@for_each("name", WANTED)
def test_a_picture_is_small_and_as_wide_as_all(name: str) -> None:
    made = (FOLDER / f"{name}.webp").read_bytes()

    assert len(made) <= SIZE
    assert (made[:4], made[8:12]) == (b"RIFF", b"WEBP")
    assert width_of(made) == WIDTH


@pytest.mark.parametrize("name", ["phoenix", "mlflow"])
def test_the_page_of_a_tool_shows_its_scores_in_the_real_tool(name: str) -> None:
    page = (ROOT / "docs" / "outlets" / f"{name}.md").read_text("utf-8")
    ((alt, picture),) = re.findall(r"!\[([^\]]*)\]\((pictures/[\w-]+\.webp)\)", page)

    assert picture == f"pictures/{name}.webp", "python -m scripts.outlet_pictures"
    assert len((ROOT / "docs" / "outlets" / picture).read_bytes()) <= SIZE
    assert len(alt.split()) > 8


def width_of(webp: bytes) -> int:
    """Of a picture with transparency (VP8X), or without (VP8)."""
    if webp[12:16] == b"VP8X":
        return int.from_bytes(webp[24:27], "little") + 1
    assert webp[12:16] == b"VP8 "
    return int.from_bytes(webp[26:28], "little") & 0x3FFF


def test_there_is_no_picture_that_no_page_shows_and_together_they_are_small() -> None:
    kept = {path.stem: path.stat().st_size for path in FOLDER.glob("*.webp")}

    assert sorted(kept) == WANTED
    assert sum(kept.values()) <= FOLDER_SIZE


def test_the_page_of_forwarding_shows_the_table_of_health() -> None:
    page = (ROOT / "docs" / "forwarding.md").read_text("utf-8")
    ((alt, picture),) = SHOWN.findall(page)

    assert len((ROOT / "docs" / picture).read_bytes()) <= SIZE, "python -m scripts.forward_picture"
    assert len(alt.split()) > 8


def test_the_first_page_shows_the_three_commands_and_a_picture() -> None:
    page = (ROOT / "docs" / "index.md").read_text("utf-8")
    readme = (ROOT / "README.md").read_text("utf-8")
    ((alt, picture),) = SHOWN.findall(page)
    (commands,) = re.findall(r"```sh\n(make run.*?)```", page, re.DOTALL)

    assert len(commands.splitlines()) == 3
    assert commands in readme
    assert len((ROOT / "docs" / picture).read_bytes()) <= SIZE, "python -m scripts.front_picture"
    assert len(alt.split()) > 8
