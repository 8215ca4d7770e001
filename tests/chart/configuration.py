"""The rendered settings as the service in the pod reads them: the mounted file, and the container's environment."""

import re
from collections.abc import Sequence
from pathlib import Path

from collector.base.errors import ConfigError
from collector.config.load import load
from collector.config.plan import plan_from
from scripts.chart.examples import Manifest
from tests.chart.support import environment, one, secret_keys, services

MOUNTED = "/etc/spanwise"


def with_secrets(container: Manifest) -> dict[str, str]:
    """The variables of a container. What a Secret gives says its name and key, and YAML could read it as a number."""
    return environment(
        container, {(name, key): f"0{name}.{key}" for name, key in secret_keys(container)}
    )


def written(found: Sequence[Manifest], folder: Path) -> tuple[Path, dict[str, dict[str, str]]]:
    """The mounted file in a folder, and the environment of each service; paths of mounted files lead there too."""
    text = one(found, "ConfigMap", _config_of(found))["data"]["spanwise.yaml"]
    file = folder / "spanwise.yaml"
    file.write_text(text.replace(MOUNTED, str(folder)))
    environments = {
        name: {
            key: value.replace(MOUNTED, str(folder)) for key, value in with_secrets(each).items()
        }
        for name, each in services(found).items()
    }
    for value in [
        text,
        *(each for variables in environments.values() for each in variables.values()),
    ]:
        for path in re.findall(rf"(?:{MOUNTED}|{re.escape(str(folder))})/([\w./-]+)", value):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).touch()
    return file, environments


def problems(found: Sequence[Manifest], folder: Path) -> list[str]:
    """What `spanwise validate` would print, for each service."""
    file, environments = written(found, folder)
    wrong: list[str] = []
    for name, each in environments.items():
        try:
            plan_from(load([file], each, []))
        except ConfigError as error:
            wrong += [f"{name}: {line}" for line in str(error).splitlines()]
    return wrong


def _config_of(found: Sequence[Manifest]) -> str:
    (name,) = {
        each["metadata"]["name"]
        for each in found
        if each["kind"] == "ConfigMap" and "spanwise.yaml" in each.get("data", {})
    }
    return name
