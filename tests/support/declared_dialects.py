"""The dialects that the files of `evaluators/dialects/readers/` declare, found by walking the folder."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module

from evaluators.dialects import readers, registry
from evaluators.dialects.dialect import Dialect


def declared() -> Iterator[tuple[str, Dialect]]:
    """Each declared object with where it stands: `module.NAME`."""
    for found in pkgutil.iter_modules(readers.__path__):
        module = import_module(f"{readers.__name__}.{found.name}")
        for name, value in vars(module).items():
            if isinstance(value, Dialect):
                yield f"{found.name}.{name}", value


def forgotten() -> list[str]:
    """Dialects that stand in a file but not in `DIALECTS`: their spans would be read as another's."""
    return [where for where, dialect in declared() if dialect not in registry.DIALECTS]


def unsampled(dialect: Dialect) -> list[str]:
    """Kinds of spans that the dialect has rows on and no sample of: none of those rows can be tried."""
    lacking = {row.on for row in dialect.rows()} - dialect.sample.spans.keys()
    where = f"`sample` of dialect {dialect.name} lacks a span of kind"
    return [f"{where} `{on}`" for on in sorted(lacking)]
