"""The image: built from the Dockerfile, started as compose.yaml starts it, healthy, and a span is scored in it.

SPANWISE_TEST_IMAGE_BASE names another base image than the Dockerfile's; `stand-in` makes one of this machine's own
files, for where images cannot be pulled.
"""

import json
import os
import re
import tomllib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from tests.support.image.engine import Container, Engine, engine
from tests.support.service import ROOT

TAG = "localhost/spanwise-test:1"
DOCKERFILE = (ROOT / "Dockerfile").read_text()
NAME = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^ ;\\]+)", re.MULTILINE | re.IGNORECASE)
NO_BYTECODE = """
import importlib.util, sys
import collector.service.app, collector.commands.cli
for name, module in sorted(sys.modules.items()):
    source = getattr(module, "__file__", None) or ""
    if source.endswith(".py") and not __import__("os").path.exists(importlib.util.cache_from_source(source)):
        print(name)
"""
DISTRIBUTIONS = """
import json
from importlib.metadata import distributions
print(json.dumps({each.name: each.version for each in distributions()}))
"""

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine that has the image. The schema of the list of components takes 12 s: only other builds ask it."""
    folder = tmp_path_factory.mktemp("engine")
    wanted = os.environ.get("SPANWISE_TEST_IMAGE_BASE")
    given = {"REVISION": "0123abc", "SBOM_CHECK": "--no-validate"}
    with engine(folder) as here:
        if wanted:
            given["BASE"] = here.base(wanted, folder)
        here.build(ROOT, TAG, given)
        yield here


@contextmanager
def started(built: Engine, name: str) -> Generator[Container]:
    """With the restrictions of compose.yaml, and no network but its own loopback."""
    service = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["spanwise"]
    name = f"spanwise-{name}-{os.getpid()}"
    options = ["--network", "none", "-v", f"{name}:/data"]
    options += ["--read-only"] if service["read_only"] else []
    options += [part for each in service["tmpfs"] for part in ("--tmpfs", each)]
    options += [part for each in service["cap_drop"] for part in ("--cap-drop", each)]
    options += [part for each in service["security_opt"] for part in ("--security-opt", each)]
    options += ["-e", "SPANWISE_WINDOWS__TRACE__ROOT_GRACE=1s", "-e", "SPANWISE_ADMIN__PORT=4391"]
    container = Container(built, name)
    check = built.healthcheck(TAG)
    try:
        built.run(name, TAG, *options)
        container.wait_for("healthy", lambda: not container.call(*check, check=False).returncode)
        yield container
    finally:
        container.remove()


@pytest.fixture(scope="module")
def running(built: Engine) -> Iterator[Container]:
    """One that its own check says is healthy."""
    with started(built, "test") as container:
        yield container


def test_its_own_check_asks_the_port_that_is_set(built: Engine, running: Container) -> None:
    other = running.call(*built.healthcheck(TAG), check=False, port=4390)

    assert other.returncode == 1
    assert other.stderr.startswith("spanwise: no answer: ")
    assert len(other.stderr.splitlines()) == 1


def test_a_span_sent_to_it_is_scored(running: Container) -> None:
    """The README's small agent, by the image's own Python."""
    code = (ROOT / "examples" / "agent.py").read_text()

    running.call("python", "-", stdin=code)
    found = running.wait_for("a score", lambda: scored(running))

    assert {each["agent"] for each in found} == {"helper"}
    assert all(0 <= each["score"] <= 1 for each in found)


def scored(container: Container) -> list[dict[str, Any]]:
    lines = container.call("cat", "/data/signals.jsonl", check=False).stdout.split("\n")[:-1]
    return [each for each in map(json.loads, lines) if each["outcome"] == "scored"]


def test_it_runs_as_a_number_that_is_not_root_and_may_write_in_two_folders(
    built: Engine, running: Container
) -> None:
    assert built.settings(TAG)["User"] == "10001:10001"
    assert running.call("id", "-u").stdout.strip() == "10001"
    status = running.call("cat", "/proc/1/status").stdout
    assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)
    for folder in ("/", "/opt/spanwise", "/usr/share/spanwise", "/etc"):
        assert running.call("touch", f"{folder}/x", check=False).returncode, folder
    for folder in ("/data", "/tmp"):
        running.call("touch", f"{folder}/x")


def test_nothing_that_it_imports_has_to_be_compiled_at_the_start(running: Container) -> None:
    assert running.call("python", "-c", NO_BYTECODE).stdout.split() == []


def test_the_list_of_components_is_what_is_installed_and_what_is_locked(running: Container) -> None:
    listed = json.loads(running.call("cat", "/usr/share/spanwise/sbom.cdx.json").stdout)
    installed = json.loads(running.call("python", "-c", DISTRIBUTIONS).stdout)
    locked = {
        (plain(name), version)
        for name, version in NAME.findall((ROOT / "locks" / "requirements.lock").read_text())
    }

    root = listed["metadata"]["component"]
    components = {plain(each["name"]): each["version"] for each in listed["components"]}
    assert (listed["bomFormat"], listed["specVersion"]) == ("CycloneDX", "1.6")
    assert (root["name"], root["version"]) == ("spanwise", installed.pop("spanwise"))
    components.pop("spanwise", None)
    assert components == {plain(name): version for name, version in installed.items()}
    assert set(components.items()) <= locked
    assert not {"pip", "setuptools", "uv", "cyclonedx-bom"} & components.keys()


def plain(name: str) -> str:
    """As package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_it_says_what_it_is(built: Engine) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    settings = built.settings(TAG)
    labels = {
        name.removeprefix("org.opencontainers.image."): value
        for name, value in settings["Labels"].items()
    }

    assert labels["title"] == "Spanwise"
    assert labels["description"] == project["description"]
    assert labels["version"] == project["version"]
    assert labels["licenses"] == project["license"]
    assert labels["revision"] == "0123abc"
    assert labels["base.name"]
    assert set(settings["ExposedPorts"]) == {"4317/tcp", "4318/tcp", "4390/tcp"}


def test_the_base_is_pinned_by_version_and_digest() -> None:
    (base,) = re.findall(r"^ARG BASE=(\S+)$", DOCKERFILE, re.MULTILINE)

    assert re.fullmatch(r"python:3\.11\.\d+-slim-bookworm@sha256:[0-9a-f]{64}", base)
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${BASE}", "${BASE}"]


def test_sigterm_ends_it_well(built: Engine) -> None:
    with started(built, "stopped") as container:
        assert container.stop() == 0
