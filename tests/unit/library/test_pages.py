"""The pages "In a notebook" and "In pytest": what they show runs as it stands."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.service import ROOT

pytestmark = pytest.mark.process


EXAMPLES = ROOT / "examples"


def blocks(page: str) -> list[str]:
    """The page's Python blocks."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def recordings(folder: Path) -> None:
    shutil.copytree(ROOT / "tests/data/captures/dspy", folder / "recordings")


def outcome_of(file: Path) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null")
    return subprocess.run(
        [*command, file.name],
        cwd=file.parent,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_notebook_runs_and_is_the_one_of_its_page(tmp_path: Path) -> None:
    recordings(tmp_path)
    file = shutil.copy(EXAMPLES / "notebook.ipynb", tmp_path)
    execute = Path(sys.executable).with_name("jupyter-execute")

    subprocess.run([execute, "--inplace", file], check=True, cwd=tmp_path, timeout=100)

    notebook: dict[str, Any] = json.loads(Path(file).read_text(encoding="utf-8"))
    cells = [each for each in notebook["cells"] if each["cell_type"] == "code"]
    assert ["".join(each["source"]) for each in cells] == [
        each.strip() for each in blocks("notebook.md")
    ]
    table = "".join(cells[1]["outputs"][0]["data"]["text/html"])
    assert "<td>agent_reliability</td><td>2 of 2</td>" in table
    assert " words" in "".join(cells[-1]["outputs"][0]["data"]["text/plain"])


def test_the_first_test_of_the_page_runs_on_recordings(tmp_path: Path) -> None:
    recordings(tmp_path)
    file = tmp_path / "test_recorded.py"
    file.write_text(blocks("pytest.md")[0])

    done = outcome_of(file)

    assert done.returncode == 0, done.stdout
    file.write_text(blocks("pytest.md")[0].replace("agent_reliability=0.5", "agent_reliability=1"))
    failed = outcome_of(file)
    assert re.search(r"agent_reliability: session `.*` scores 0\.\d+, below 1", failed.stdout)


def test_the_agents_own_test_runs_and_is_the_one_of_the_page(tmp_path: Path) -> None:
    file = Path(shutil.copy(EXAMPLES / "test_helper.py", tmp_path))

    done = outcome_of(file)

    assert done.returncode == 0, done.stdout
    assert blocks("pytest.md")[1] == file.read_text(encoding="utf-8")
