"""Every page of an agent or a framework that has a recording shows a small picture of its trace."""

import re
from pathlib import Path

from scripts.doc_pictures import FOLDER, WIDTH, shown
from scripts.frameworks import ROOT, frameworks
from scripts.webp import SIZE
from tests.support.table import for_each

FOLDER_SIZE = 2_200_000
"""Bytes: every clone has them; about 58 KB for each page of a framework or an agent."""
SHOWN = re.compile(r"!\[([^\]]*)\]\(([\w./-]+\.webp)\)")
DOCS = ROOT / "docs"
PAGES = {
    path.stem: path for folder in ("agents", "frameworks") for path in (DOCS / folder).glob("*.md")
}
WANTED = sorted(shown())


def test_every_framework_and_agents_with_examples_are_among_them() -> None:
    assert {*frameworks(), "claude-code", "codex", "sdk-log-events"} <= set(WANTED)


@for_each("name", WANTED)
def test_a_page_with_a_recording_shows_its_picture_as_wide_as_all(name: str) -> None:
    made = assert_shown(PAGES[name], FOLDER / f"{name}.webp", "doc_pictures")

    assert (made[:4], made[8:12]) == (b"RIFF", b"WEBP")
    assert width_of(made) == WIDTH


@for_each(
    "page,picture,script",
    [
        ("outlets/phoenix.md", "outlets/pictures/phoenix.webp", "outlet_pictures"),
        ("outlets/mlflow.md", "outlets/pictures/mlflow.webp", "outlet_pictures"),
        ("forwarding.md", "pictures/front/forwarding.webp", "forward_picture"),
        ("index.md", "pictures/front/agent.webp", "front_picture"),
    ],
)
def test_a_page_of_its_own_shows_its_picture(page: str, picture: str, script: str) -> None:
    assert_shown(DOCS / page, DOCS / picture, script)


def assert_shown(page: Path, picture: Path, script: str) -> bytes:
    """The page's one picture, which is small and whose text says what is on it."""
    ((alt, shown),) = SHOWN.findall(page.read_text("utf-8"))

    assert (page.parent / shown).resolve() == picture, f"python -m scripts.{script}"
    assert len(alt.split()) > 8
    made = picture.read_bytes()
    assert len(made) <= SIZE
    return made


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


def test_the_first_page_shows_the_three_commands() -> None:
    page = (DOCS / "index.md").read_text("utf-8")
    (commands,) = re.findall(r"```sh\n(make run.*?)```", page, re.DOTALL)

    assert len(commands.splitlines()) == 3
    assert commands in (ROOT / "README.md").read_text("utf-8")
