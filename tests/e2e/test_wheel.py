"""The wheel: three packages at its top level and the files that they read."""

import shutil
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from tests.support.processes import ran
from tests.support.service import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SETUPTOOLS = 77
"""What pyproject.toml asks for; in the lock file that `make install` uses."""

SOURCES = ("pyproject.toml", "LICENSE", "README.md", "collector", "evaluators", "spanwise")


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The files in the wheel, built from a copy: a build leaves folders behind."""
    version = metadata.version("setuptools")
    assert int(version.partition(".")[0]) >= SETUPTOOLS, f"setuptools {version}: run `make install`"
    copy, made = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        here = ROOT / name
        if here.is_dir():
            shutil.copytree(here, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(here, copy / name)
    built = ran(
        *(sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(made), str(copy)),
        timeout=250,
    )
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    (wheel,) = made.glob("spanwise-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_top_level_is_exactly_our_three_packages(names: set[str]) -> None:
    top = {name.partition("/")[0] for name in names}

    assert {each for each in top if not each.endswith(".dist-info")} == {
        "collector",
        "evaluators",
        "spanwise",
    }


def test_every_file_of_the_packages_is_in_it(names: set[str]) -> None:
    sources = {
        str(path.relative_to(ROOT))
        for package in ("collector", "evaluators", "spanwise")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    kinds = {Path(each).suffix for each in sources}

    assert sources - names == set()
    assert kinds >= {".py", ".html", ".css", ".json", ".typed"}
    assert any(each.endswith("prices.json") for each in names)
    assert "collector/records/signal.schema.json" in names


def test_the_licence_is_in_it_and_no_test_is(names: set[str]) -> None:
    assert any(each.endswith("licenses/LICENSE") for each in names)
    assert not [each for each in names if "test" in Path(each).name and each.endswith(".py")]
