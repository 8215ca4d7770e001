"""`make docs`: the site is built without a network and without a warning, and fetches nothing when it is read."""

import os
import re
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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if given := os.environ.get("SPANWISE_TEST_SITE"):  # .ci/run has built it so
        return Path(given)
    folder = tmp_path_factory.mktemp("docs")
    done = ran(
        *(sys.executable, "-m", "scripts.site", str(folder)),
        env={**os.environ, **dict.fromkeys(PROXIES, NOWHERE)},
        timeout=580,
    )
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


SHOWN = {
    "index": ["examples/agent.py", 'href="kubernetes.html"', 'href="security.html"'],
    "kubernetes": ["Three ways"],
    "security": ["Threat model"],
    "frameworks/strands": [
        *("Your table for 2 at Chez Paul is booked", "tool_correctness", "http://127.0.0.1:4318"),
    ],
    "agents/codex": [],
}
"""Of pages made from elsewhere some words; pages of frameworks and agents have what is made of their recording."""


def test_pages_have_what_is_made_elsewhere_and_pictures_of_traces_with_their_words(
    site: Path,
) -> None:
    for page, words in SHOWN.items():
        text = (site / f"{page}.html").read_text()
        assert [each for each in words if each not in text] == [], page
        pictures: list[tuple[str, str]] = PICTURES.findall(text)
        for alt, source in pictures:
            assert (site / page).parent.joinpath(source).resolve().stat().st_size > 10_000, alt
        if "/" in page:
            assert pictures[0][0].startswith("The page of this trace: ")
        assert pictures or page in ("kubernetes", "security")
