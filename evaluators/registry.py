"""Every evaluator there is: ours by walking two packages, third parties' by entry point."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import evaluators.session
import evaluators.trace
from evaluators.declare import Spec, declared
from evaluators.errors import DuplicateEvaluatorError, PluginError, PluginNotFound
from evaluators.model import Method

GROUP = "spanwise.evaluators"
_FILE = re.compile(r"[a-z_][a-z0-9_]*")


class Registry:
    """Evaluators by (name, method). An object, not a global: two of them never meet."""

    def __init__(self, specs: Iterable[Spec] = ()) -> None:
        self._specs: dict[tuple[str, Method], Spec] = {}
        self.broken: dict[str, PluginError] = {}
        """Third parties that were left out, by the name before the `/`, and why."""
        for spec in specs:
            self.add(spec)

    @classmethod
    def discover(
        cls,
        points: Iterable[EntryPoint] | None = None,
        *,
        plugins: Sequence[str] = (),
    ) -> Registry:
        """Ours, then third parties' (named `package/name`): of entry points, then of `plugins`.

        Args:
            points: Default: the installed packages' of the group `spanwise.evaluators`.
            plugins: Python files, or names of modules. A file's evaluators are named `file/name`, without `.py`.

        Raises:
            DuplicateEvaluatorError: Two declare the same name and method.
            PluginError: An entry point or a plug-in cannot be imported, or declares no evaluator.
        """
        registry = cls()
        for package in (evaluators.trace, evaluators.session):
            for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
                for spec in _declared_in(importlib.import_module(module.name)):
                    registry.add(spec)
        for point in installed_points() if points is None else points:
            registry._add_foreign(point.name, _declared_in(_load(point)))
        for plugin in plugins:
            specs = tuple(_declared_in(_imported(plugin)))
            if not specs:
                raise PluginError(f"plugin `{plugin}`: no function in it is marked with @evaluator")
            registry._add_foreign(package_of(plugin), specs)
        return registry

    def _add_foreign(self, package: str, specs: Iterable[Spec]) -> None:
        """Take in evaluators of a third party: named `package/name`, clamped and limited in time."""
        for spec in specs:
            # Ranking is in the main process, where none of theirs runs.
            if "earlier_sessions" in spec.needs:
                raise PluginError(
                    f"`{package}/{spec.name}`: only ours are ranked among earlier sessions"
                )
            source = spec.source or f"the package `{package}`"
            name = f"{package}/{spec.name}"
            self.add(replace(spec, name=name, method="custom", source=source))

    def add(self, spec: Spec) -> None:
        """Take in one evaluator.

        Raises:
            DuplicateEvaluatorError: Its name and method are taken.
        """
        key = (spec.name, spec.method)
        if key in self._specs:
            raise DuplicateEvaluatorError(
                f"evaluator `{spec.name}` ({spec.method}) is declared twice"
            )
        self._specs[key] = spec

    def named(self, name: str) -> tuple[Spec, ...]:
        """The siblings of that name: one per method; empty when there is none."""
        return tuple(spec for spec in self if spec.name == name)

    def __iter__(self) -> Iterator[Spec]:
        """In order of name and method."""
        return iter([self._specs[key] for key in sorted(self._specs)])

    def __len__(self) -> int:
        return len(self._specs)


@cache
def installed_points() -> EntryPoints:
    """Third parties' evaluators, by package: reading the files of every package again takes 15 ms of CPU."""
    return entry_points(group=GROUP)


def package_of(plugin: str) -> str:
    """What is before the `/` in the names of its evaluators."""
    return Path(plugin).stem if plugin.endswith(".py") else plugin.rpartition(".")[2]


def listing(specs: Iterable[Spec]) -> list[dict[str, Any]]:
    """The rows of `spanwise evaluators --format json` and `/api/v1/evaluators`, by scope and name."""
    rows = [
        {
            "name": spec.name,
            "scope": spec.scope,
            "version": spec.version,
            "method": spec.method,
            "needs": list(spec.needs),
            "options": dict(spec.options),
            "doc": spec.doc,
        }
        for spec in specs
    ]
    return sorted(rows, key=lambda row: (row["scope"] != "trace", row["name"], row["method"]))


def _load(point: EntryPoint) -> ModuleType:
    try:
        module = point.load()
    except (Exception, SystemExit) as error:  # a third party's import can raise anything
        raise PluginError(f"entry point `{point.name}` of {GROUP}: {error}") from error
    if not isinstance(module, ModuleType):
        raise PluginError(f"entry point `{point.name}` of {GROUP} must name a module")
    return module


def _imported(plugin: str) -> ModuleType:
    """The module of a plug-in: of a Python file, whose folder need not be on the path, or by its name."""
    try:
        if not plugin.endswith(".py"):
            return importlib.import_module(plugin)
        path = Path(plugin).resolve()
        if path.is_file():
            return _imported_file(path)
    except ModuleNotFoundError as error:
        is_typo = error.name is not None and f"{plugin}.".startswith(f"{error.name}.")
        raise (PluginNotFound if is_typo else PluginError)(
            f"plugin `{plugin}`: {error!r}"
        ) from error
    except (Exception, SystemExit) as error:  # a third party's import can raise anything
        raise PluginError(f"plugin `{plugin}`: {error!r}") from error
    raise PluginNotFound(f"plugin `{plugin}`: no such file")


def _imported_file(path: Path) -> ModuleType:
    name = path.stem
    if not _FILE.fullmatch(name):
        raise ValueError("the name of the file must be lower_snake_case")
    spec = importlib.util.spec_from_file_location(f"spanwise_plugins.{name}", path)
    assert spec is not None  # noqa: S101 - a path that ends in .py always has a loader
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # what its annotations name is looked up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


def _declared_in(module: ModuleType) -> Iterator[Spec]:
    """Evaluators declared in a module or its submodules, without those imported from elsewhere."""
    home = module.__name__
    for value in list(vars(module).values()):
        spec = declared(value)
        if spec is not None and (
            value.__module__ == home or value.__module__.startswith(f"{home}.")
        ):
            yield spec
