"""What third parties' evaluators declare, each plug-in asked in a process of its own: importing one may do anything.

python -m collector.config.declaring FD

The first frame is the question, the answer its only one: both are JSON.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from collector.base.child import Child
from collector.base.frames import pack_frame, parent_socket, read_frames
from collector.base.plugins import limit_plugins
from evaluators.declare import Spec
from evaluators.errors import PluginError, PluginNotFound, SettingsError
from evaluators.plan import Settings, check_block
from evaluators.registry import Registry, installed_points, package_of
from evaluators.run import failure_of

IMPORT_TIMEOUT = 30.0
"""Seconds, once for all of them: a large library of models takes ten on a busy machine, and the start waits."""
LONGEST = 1000  # characters of why it cannot be imported
NICENESS = 0  # the start waits for it
_HERE_ALONE = ("resources", "annotations", "function", "sketch")
"""Fields of a declaration that only the processes which run it have."""


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """One third party: a file or a module of `plugins`, or the name of an installed package's entry point."""

    name: str
    is_installed: bool
    settings: dict[str, Settings]
    """Of evaluators of any third party."""


class Declared(msgspec.Struct, kw_only=True):
    """What it declares."""

    specs: list[dict[str, Any]] = []
    given: dict[str, dict[str, Any]] = {}
    """By evaluator, the options of the settings as their types take them."""
    wrong: list[str] = []
    """Settings that do not fit, a line each."""
    error: str | None = None
    is_missing: bool = False


class ThirdParties(msgspec.Struct, kw_only=True):
    """All of them, without those that are broken."""

    specs: list[Spec]
    broken: dict[str, PluginError]
    """By the name before the `/` of their evaluators."""
    declared: list[Declared]
    plugins: tuple[str, ...]
    installed: tuple[str, ...]

    def given(self, settings: Mapping[str, Settings]) -> dict[str, Settings]:
        """The settings, those of third parties as the types of their options take them.

        Raises SettingsError: one does not fit.
        """
        if wrong := [line for each in self.declared for line in each.wrong]:
            raise SettingsError("\n".join(wrong))
        options = {name: taken for each in self.declared for name, taken in each.given.items()}
        return {
            name: replace(each, options=options.get(name, each.options))
            for name, each in settings.items()
            if name.partition("/")[0] not in self.broken
        }


def third_parties(plugins: Sequence[str], settings: Mapping[str, Settings]) -> ThirdParties:
    """Ask every installed package and every one of `plugins` at once; without any no process is started.

    They are asked again only when a file or a setting has changed.
    """
    theirs = {name: each for name, each in settings.items() if "/" in name}
    stamps = tuple((each, _stamp(each)) for each in plugins)
    installed = tuple(
        (each.name, each.dist and (each.dist.version, str(each.dist.locate_file(""))))
        for each in installed_points()
    )
    return _found(stamps, installed, msgspec.json.encode(theirs))


def _stamp(plugin: str) -> tuple[int, int] | None:
    try:
        status = Path(plugin).stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4)
def _found(
    stamps: tuple[tuple[str, object], ...], packages: tuple[tuple[str, object], ...], packed: bytes
) -> ThirdParties:
    theirs = msgspec.json.decode(packed, type=dict[str, Settings])
    plugins = [name for name, _ in stamps]
    installed = dict.fromkeys(name for name, _ in packages)
    every = [
        *(Plugin(name=name, is_installed=True, settings=theirs) for name in installed),
        *(Plugin(name=name, is_installed=False, settings=theirs) for name in plugins),
    ]
    found = ThirdParties(specs=[], broken={}, declared=[], plugins=(), installed=())
    answers: list[Declared] = []
    if every:
        with ThreadPoolExecutor(1) as thread:  # the caller's may have a loop of its own
            answers = thread.submit(asyncio.run, _asked(every)).result()
    for plugin, answer in zip(every, answers, strict=True):
        package = plugin.name if plugin.is_installed else package_of(plugin.name)
        if answer.error is not None:
            kind = PluginNotFound if answer.is_missing else PluginError
            found.broken[package] = kind(answer.error)
            continue
        found.declared.append(answer)
        found.specs += map(_spec, answer.specs)
        if plugin.is_installed:
            found.installed += (plugin.name,)
        else:
            found.plugins += (plugin.name,)
    return found


async def _asked(every: Sequence[Plugin]) -> list[Declared]:
    async with asyncio.TaskGroup() as asking:
        asked = [asking.create_task(_ask(each)) for each in every]
    return [each.result() for each in asked]


async def _ask(plugin: Plugin) -> Declared:
    try:
        question = msgspec.json.encode(plugin)
    except UnicodeEncodeError:
        return Declared(error=f"plugin {plugin.name!a}: not a name in UTF-8", is_missing=True)
    child = Child("collector.config.declaring", question, IMPORT_TIMEOUT, is_theirs=True)
    try:
        async with child:
            return msgspec.json.decode(child.first, type=Declared)
    except TimeoutError:
        why = f"its import took more than {IMPORT_TIMEOUT:g} s"
    except (EOFError, msgspec.DecodeError):
        why = f"its import ended the process (exit code {child.exit_code})"
    except OSError as error:
        why = f"its process cannot be started: {error}"
    what = f"{'entry point' if plugin.is_installed else 'plugin'} `{plugin.name}`"
    return Declared(error=f"{what}: {why}")


def _spec(declared: dict[str, Any]) -> Spec:
    known: dict[str, Any] = {
        **declared,
        "needs": tuple(declared["needs"]),
        "reads": frozenset(declared["reads"]),
    }
    types = dict.fromkeys(declared["options"], Any)
    return Spec(**known, resources={}, annotations=types, function=_elsewhere)


def _elsewhere(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("third parties' evaluators run in processes of their own")


def declare(plugin: Plugin) -> Declared:
    """Import it here."""
    points = installed_points().select(name=plugin.name) if plugin.is_installed else ()
    files = () if plugin.is_installed else (plugin.name,)
    try:
        registry = Registry.discover(points, plugins=files)
    except PluginNotFound as error:
        return Declared(error=str(error), is_missing=True)
    except BaseException as error:  # noqa: BLE001 - also a Ctrl-C of its own
        is_ours = isinstance(error, PluginError)
        why = str(error) if is_ours else f"plugin `{plugin.name}`: {failure_of(error).message}"
        return Declared(error=why[:LONGEST])
    found = Declared()
    for spec in registry:
        if spec.method == "custom":
            found.specs.append(_described(spec))
            if chosen := plugin.settings.get(spec.name):
                _check(spec, chosen, found)
    return found


def _described(spec: Spec) -> dict[str, Any]:
    kept = {each.name: getattr(spec, each.name) for each in fields(spec)}
    return {name: value for name, value in kept.items() if name not in _HERE_ALONE}


def _check(spec: Spec, chosen: Settings, found: Declared) -> None:
    given: dict[str, Any] = {}
    try:
        for name, value in chosen.options.items():
            given[name] = spec.option(name, value)
        for kind in spec.resources.values():
            check_block(spec.name, kind, {**spec.options, **given})
    except SettingsError as error:
        found.wrong.append(str(error))
    found.given[spec.name] = given


def main() -> None:
    with parent_socket(NICENESS) as link:
        limit_plugins()
        asked = next(read_frames(link.makefile("rb")))
        declared = declare(msgspec.json.decode(asked, type=Plugin))
        with contextlib.suppress(Exception):  # it may have put something of its own there
            sys.stdout.flush()  # `_exit` would drop what it printed
        link.sendall(pack_frame(msgspec.json.encode(declared)))
    os._exit(0)  # it may have left threads behind


if __name__ == "__main__":
    main()
