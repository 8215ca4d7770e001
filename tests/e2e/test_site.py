"""`make docs`: the site is built without a network and without a warning, and fetches nothing when it is read."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from scripts.frameworks import DATA, pages
from tests.support.processes import ran
from tests.support.service import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

NOWHERE = "http://127.0.0.1:9"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY")
FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]+)|<link\b[^>]*\bhref=\"([^\"]+)"
)
PICTURES = re.compile(r'<img alt="([^"]+)" src="([^"]+\.webp)"')
ADDRESSES = re.compile(r"\b(?:href|src)=\"([^\"]+)\"")


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    return ran(
        *(sys.executable, "-m", "scripts.site", str(folder)),
        env={**os.environ, **dict.fromkeys(PROXIES, NOWHERE)},
        timeout=580,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if given := os.environ.get("SPANWISE_TEST_SITE"):  # .ci/run has built it so
        return Path(given)
    folder = tmp_path_factory.mktemp("docs")
    done = build(folder)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "WARNING" not in done.stderr
    return folder / "site"


def test_no_page_of_a_framework_is_stale() -> None:
    made = pages()
    kept = {path.name: path.read_text("utf-8") for path in DATA.parent.glob("*.md")}

    assert kept.keys() == made.keys()
    assert [name for name in made if made[name] != kept[name]] == [], "python -m scripts.frameworks"


def test_every_page_of_docs_is_in_it(site: Path) -> None:
    written = {
        str(path.relative_to(ROOT / "docs").with_suffix(".html")).replace("README", "index")
        for path in (ROOT / "docs").rglob("*.md")
    }
    made = {str(path.relative_to(site)) for path in site.rglob("*.html")}

    assert written <= made


def test_reading_it_fetches_nothing_from_elsewhere(site: Path) -> None:
    fetched: set[str] = {
        address
        for path in site.rglob("*.html")
        for found in FETCHED.findall(path.read_text())
        for address in found
        if address
    }
    styles = [path.read_text() for path in site.rglob("*.css")]

    assert fetched
    assert [each for each in fetched if urlsplit(each).netloc] == []
    assert not [
        each for each in styles if re.search(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", each)
    ]


def test_every_address_of_a_page_of_ours_leads_to_a_file(site: Path) -> None:
    lost: list[str] = []
    for path in site.rglob("*.html"):
        addresses: list[str] = ADDRESSES.findall(path.read_text())
        for address in addresses:
            parts = urlsplit(address)
            if parts.scheme or not parts.path:
                continue
            if not (path.parent / unquote(parts.path)).exists():
                lost.append(f"{path.name}: {address}")

    assert lost == []


def test_a_framework_shows_what_is_made_of_its_recording(site: Path) -> None:
    text = (site / "frameworks" / "strands.html").read_text()

    assert "Your table for 2 at Chez Paul is booked" in text
    assert "tool_correctness" in text
    assert "http://127.0.0.1:4318" in text


def test_the_pictures_of_traces_are_in_it_with_their_words(site: Path) -> None:
    for page in ("frameworks/strands", "agents/codex"):
        text = (site / f"{page}.html").read_text()

        (alt, source), *_ = PICTURES.findall(text)
        assert alt.startswith("The page of this trace: ")
        assert (site / page).parent.joinpath(source).resolve().stat().st_size > 10_000


def test_the_first_page_has_the_commands_and_pages_from_elsewhere_are_there(site: Path) -> None:
    text = (site / "index.html").read_text()

    assert "examples/agent.py" in text
    assert PICTURES.search(text) is not None
    for page, words in (("kubernetes", "Three ways"), ("security", "Threat model")):
        assert f'href="{page}.html"' in text
        assert words in (site / f"{page}.html").read_text()
