"""`make release`: what it makes is whole, and works where no checkout is."""

import json
import os
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.dialect_spans import SpanSpec, request
from tests.support.processes import ran
from tests.support.recordings import write
from tests.support.service import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


def run(*command: str, cwd: Path, **environment: str) -> str:
    done = ran(*command, cwd=cwd, env={**os.environ, **environment}, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def made() -> Path:
    run("make", "release", cwd=ROOT)
    return ROOT / "build" / "release"


def test_everything_is_there_with_its_checksum(made: Path) -> None:
    names = {each.name.rpartition("-")[2] for each in made.iterdir()}

    assert names == {"any.whl", "0.1.0.tar.gz", "0.1.0.tgz", "sbom.cdx.json", "SHA256SUMS"}
    checked = run("sha256sum", "--check", "SHA256SUMS", cwd=made)
    assert len(checked.splitlines()) == 4


def test_the_list_of_components_is_that_of_the_lock_file(made: Path) -> None:
    listed = json.loads((made / "sbom.cdx.json").read_text(encoding="utf-8"))
    locked = (ROOT / "locks" / "requirements.lock").read_text(encoding="utf-8")

    components = {f"{each['name']}=={each['version']}" for each in listed["components"]}
    pinned = {line.split()[0] for line in locked.splitlines() if "==" in line and line[0] != " "}
    assert listed["metadata"]["component"]["name"] == "spanwise"
    assert components == pinned


def test_the_chart_is_the_one_of_the_commit(made: Path) -> None:
    with tarfile.open(made / "spanwise-0.1.0.tgz") as tar:
        names = set(tar.getnames())

    assert {"spanwise/Chart.yaml", "spanwise/values.schema.json"} <= names
    assert {f"spanwise/templates/{each}" for each in ("workloads.yaml", "_endpoints.tpl")} <= names


def test_the_wheel_holds_our_three_packages_whole_and_the_licence(made: Path) -> None:
    (wheel,) = made.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    packages = ("collector", "evaluators", "spanwise")
    listed = run("git", "ls-files", *packages, cwd=ROOT).splitlines()

    top = {name.partition("/")[0] for name in names}
    assert {each for each in top if not each.endswith(".dist-info")} == {*packages}
    assert {*listed} - names == set()
    assert {Path(each).suffix for each in listed} >= {".py", ".html", ".css", ".json", ".typed"}
    assert any(each.endswith("licenses/LICENSE") for each in names)
    assert not [each for each in names if "test" in Path(each).name and each.endswith(".py")]


def test_the_wheel_scores_a_recording_outside_the_checkout(made: Path, tmp_path: Path) -> None:
    """In an environment of its own; what the lock file installs is lent to it."""
    (wheel,) = made.glob("*.whl")
    fresh = tmp_path / "fresh"
    venv.create(fresh, with_pip=True)
    run(
        str(fresh / "bin/pip"), "install", "-q", "--no-deps", "--no-index", str(wheel), cwd=tmp_path
    )
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
    sent = request(SpanSpec(id=1, attributes=attributes))
    write(tmp_path / "run.otlp", [sent])
    lent = next(each for each in sys.path if each.endswith("site-packages"))
    spanwise = str(fresh / "bin/spanwise")

    where = run(
        *(str(fresh / "bin/python"), "-c", "import collector; print(collector.__file__)"),
        cwd=tmp_path,
        PYTHONPATH=lent,
    )
    said = run(spanwise, "evaluate", "run.otlp", cwd=tmp_path, PYTHONPATH=lent)

    assert where.startswith(str(fresh))
    assert "latency" in said
    assert "0.1.0" in run(spanwise, "--version", cwd=tmp_path, PYTHONPATH=lent)
