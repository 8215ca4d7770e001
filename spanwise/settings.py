"""The configuration of a call of the library: the same tree as `spanwise.yaml`, from the same sources."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from collector.config.load import load
from collector.config.tree import Config

T = TypeVar("T")
P = ParamSpec("P")


def waits(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The function without the `a` of its name: it waits for the result.

    In a notebook the loop of this thread is busy, so it runs on one of its own.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(function(*args, **kwargs))
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="spanwise") as pool:
            return pool.submit(asyncio.run, function(*args, **kwargs)).result()

    call.__name__ = call.__qualname__ = function.__name__.removeprefix("a")
    return call


Configuration = str | Path | Mapping[str, Any] | None
"""A YAML file, or settings as nested mappings. `SPANWISE_...` of the environment counts too, as for the command."""


def settings_of(
    config: Configuration,
    *,
    judge: str | Mapping[str, Any] | None = None,
    expectations: Path | None = None,
    plugins: Sequence[str | Path] = (),
) -> Config:
    """The configuration, with what the call names above it.

    Args:
        config: See `Configuration`.
        judge: A litellm model name, or the section `judge`.
        expectations: A file of expected answers and tools.
        plugins: Python files or modules with evaluators of your own, beside those of the configuration.

    Raises:
        ConfigError: One line per bad field.
    """
    files = [Path(config)] if isinstance(config, str | Path) else []
    settings = dict(config) if isinstance(config, Mapping) else {}
    if judge is not None:
        settings["judge"] = {"model": judge} if isinstance(judge, str) else dict(judge)
    if expectations is not None:
        settings["expectations"] = str(expectations)
    loaded = load(files, os.environ, (), settings)
    return loaded.model_copy(update={"plugins": (*loaded.plugins, *map(str, plugins))})
