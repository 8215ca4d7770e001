"""The pages as the site's generator reads them: copies of docs/, lists of folders, and no link that leaves the site."""

import os
import re
import shutil
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ELSEWHERE = {"helm/README.md": "kubernetes.md", "SECURITY.md": "security.md"}
"""Pages that stand outside docs/, where people look for them, and their places on the site."""
_LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)#]*)(#[^)]*)?\)")
_ENTRY = re.compile(r"^[\w./-]+$", re.MULTILINE)


def stage(folder: Path) -> None:
    """Write every page, and the configuration, below an empty folder."""
    shutil.copytree(DOCS, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    _index(folder / "decisions")
    for source, page in ELSEWHERE.items():
        text = (ROOT / source).read_text("utf-8")
        (folder / page).write_text(linked(text, PurePosixPath(source)), encoding="utf-8")
    if (folder / "agents").is_dir() and not (folder / "agents" / "index.md").exists():
        _list(folder / "agents", "Coding agents", "How to connect each, and what one sees.")
    for page in sorted(folder.rglob("*.md")):
        if page.name not in ELSEWHERE.values():
            own = PurePosixPath("docs", page.relative_to(folder))
            page.write_text(linked(page.read_text("utf-8"), own), encoding="utf-8")
    index = folder / "index.md"
    index.write_text(index.read_text("utf-8") + _others(folder), encoding="utf-8")


def _index(folder: Path) -> None:
    """The README of a folder, which lists its pages for people, becomes the index that the generator asks for."""
    index = (folder / "README.md").rename(folder / "index.md")
    names = sorted(each.stem for each in folder.glob("*.md") if each != index)
    tree = ["", "```{toctree}", ":hidden:", *names, "```", ""]
    index.write_text(index.read_text("utf-8") + "\n".join(tree), "utf-8")


def _list(folder: Path, title: str, about: str) -> None:
    """A page that lists the others of its folder."""
    names = sorted(each.stem for each in folder.glob("*.md"))
    tree = ["```{toctree}", ":maxdepth: 1", *names, "```"]
    (folder / "index.md").write_text("\n".join([f"# {title}", "", about, "", *tree, ""]), "utf-8")


def _others(folder: Path) -> str:
    """Pages that no list names yet, as a list of their own."""
    named = set(_ENTRY.findall((folder / "index.md").read_text("utf-8")))
    top = {each.stem for each in folder.glob("*.md")} - {"index"}
    folders = {f"{each.parent.name}/index" for each in folder.glob("*/index.md")}
    rest = sorted((top | folders) - named)
    return "\n".join(["", "```{toctree}", ":caption: More", *rest, "```", ""]) if rest else ""


def linked(text: str, page: PurePosixPath) -> str:
    """The text of a page of the repository as the site has it: a link to what is not a page becomes the file's name."""
    home = "docs" / page.relative_to("docs").parent if page.parts[0] == "docs" else "docs"

    def replaced(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        place = PurePosixPath(os.path.normpath(page.parent / target))
        if not target:
            return found[0]
        if f"{place}" in ELSEWHERE:
            place = PurePosixPath("docs", ELSEWHERE[f"{place}"])
        elif place.parts[0] != "docs":
            return f"{words} (`{place}`)" if f"{place}" not in words else f"`{place}`"
        if (DOCS / place.relative_to("docs")).is_dir():
            place /= "index.md"
        return f"[{words}]({os.path.relpath(place, home)}{anchor})"

    return _LINK.sub(replaced, text)
