"""Semantic Kernel's function names without their plugin: `WeatherPlugin-get_weather` is the tool `get_weather`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from evaluators.model import JSON

_SCOPES = ("semantic_kernel", "Microsoft.SemanticKernel")
_QUALIFIED = re.compile(r"(?:\w+-|\w*Plugin_)(?=\w+$)")
"""A function's name holds no dash; the underscore, which .NET uses with some models, only separates a `...Plugin`."""


FUNCTIONS = "sk.available_functions"
"""The names of the functions offered, with commas between them, on the loop around the model calls."""


def function_names(value: JSON) -> JSON:
    """The names one by one."""
    return [name for name in value.split(",") if name] if isinstance(value, str) else None


def speaks_kernel(scopes: Iterable[str]) -> bool:
    """Whether Semantic Kernel took part in the trace: its names then stand in other libraries' spans as well."""
    return any(scope.startswith(_SCOPES) for scope in scopes)


def function_name(name: str) -> str:
    """The function's own name."""
    return _QUALIFIED.sub("", name, count=1) if _QUALIFIED.match(name) else name
