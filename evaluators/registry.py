"""Every evaluator there is: ours by walking two packages, third parties' by entry point."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

import evaluators.session
import evaluators.trace
from evaluators.declare import Spec, declared
from evaluators.errors import DuplicateEvaluatorError, PluginError
from evaluators.model import Method

GROUP = "spanwise.evaluators"


class Registry:
    """Evaluators by (name, method). An object, not a global: two of them never meet."""

    def __init__(self, specs: Iterable[Spec] = ()) -> None:
        self._specs: dict[tuple[str, Method], Spec] = {}
        for spec in specs:
            self.add(spec)

    @classmethod
    def discover(cls, plugins: Iterable[EntryPoint] | None = None) -> Registry:
        """Ours, then third parties' (named `package/name`).

        Raises:
            DuplicateEvaluatorError: Two declare the same name and method.
            PluginError: An entry point cannot be imported.
        """
        registry = cls()
        for package in (evaluators.trace, evaluators.session):
            for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
                for spec in _declared_in(importlib.import_module(module.name)):
                    registry.add(spec)
        for point in entry_points(group=GROUP) if plugins is None else plugins:
            for spec in _declared_in(_load(point)):
                name = f"{point.name}/{spec.name}"
                source = spec.source or f"the package `{point.name}`"
                registry.add(replace(spec, name=name, method="custom", source=source))
        return registry

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
    except Exception as error:  # a third party's import can raise anything
        raise PluginError(f"entry point `{point.name}` of {GROUP}: {error}") from error
    if not isinstance(module, ModuleType):
        raise PluginError(f"entry point `{point.name}` of {GROUP} must name a module")
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
