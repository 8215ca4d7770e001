"""What third parties' evaluators declare, each plug-in asked in a process of its own: importing one may do anything.

python -m collector.config.declaring
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from collector.base.plugins import limit_plugins
from evaluators.declare import Spec
from evaluators.errors import PluginError, PluginNotFound, SettingsError
from evaluators.plan import Settings, check_block
from evaluators.registry import Registry, installed_points, package_of
from evaluators.run import failure_of

IMPORT_TIMEOUT = 30.0
"""Seconds, once for all of them: a large library of models takes ten on a busy machine, and the start waits."""
LONGEST = 1000  # characters of why it cannot be imported
LOOK = 0.05  # seconds between two looks whether it has ended
MOST_SAID = 2 << 20
"""Bytes that it may answer, and print: a thousand evaluators with their docstrings take half of it."""
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
    with ThreadPoolExecutor(max(1, len(every))) as asking:
        answers = list(asking.map(_ask, every))
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


def _ask(plugin: Plugin) -> Declared:
    what = f"{'entry point' if plugin.is_installed else 'plugin'} `{plugin.name}`"
    try:
        asked = msgspec.json.encode(plugin)
    except UnicodeEncodeError:
        return Declared(error=f"plugin {plugin.name!a}: not a name in UTF-8", is_missing=True)
    with subprocess.Popen(
        # unbuffered: it ends without writing what is in a buffer
        [sys.executable, "-P", "-u", "-m", "collector.config.declaring"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(asked)
        answer = _heard(process)
        why = f"its import took more than {IMPORT_TIMEOUT:g} s"
        if process.poll() is not None:
            why = f"its import ended the process (exit code {process.returncode})"
        # What it has started ends, too. macOS says the second of one that has ended.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    try:
        return msgspec.json.decode(answer, type=Declared)
    except msgspec.DecodeError:
        return Declared(error=f"{what}: {why}")


def _heard(process: subprocess.Popen[bytes]) -> bytes:
    """What it answers until it has ended or its time is over; meanwhile what it prints is passed on.

    A process that it leaves behind may hold both pipes open and write without end.
    """
    until = time.monotonic() + IMPORT_TIMEOUT
    answer, printed = bytearray(), 0
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None  # noqa: S101 - it is a pipe
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map() and (left := until - time.monotonic()) > 0:
            has_ended = process.poll() is not None
            ready = selector.select(0 if has_ended else min(left, LOOK))
            if has_ended and not ready:
                break
            for key, _ in ready:
                said = os.read(key.fd, 1 << 16)
                if key.fileobj is process.stdout:
                    answer += said
                else:
                    printed += os.write(2, said)
                if not said or max(len(answer), printed) > MOST_SAID:
                    selector.unregister(key.fileobj)
        process.poll()
    return bytes(answer)


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


# --- in the child -------------------------------------------------------------------------------------------------


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


def given(settings: Mapping[str, Settings], found: ThirdParties) -> dict[str, Settings]:
    """The settings, those of third parties as the types of their options take them.

    Raises:
        SettingsError: one does not fit.
    """
    if wrong := [line for each in found.declared for line in each.wrong]:
        raise SettingsError("\n".join(wrong))
    options = {name: each for declared in found.declared for name, each in declared.given.items()}
    return {
        name: replace(each, options=options[name]) if name in options else each
        for name, each in settings.items()
        if name.partition("/")[0] not in found.broken
    }


def main() -> None:
    """Answer the question on stdin in what was stdout: what others' code prints goes to stderr."""
    answer = os.dup(1)
    os.dup2(2, 1)
    limit_plugins()
    declared = declare(msgspec.json.decode(sys.stdin.buffer.read(), type=Plugin))
    with os.fdopen(answer, "wb") as link:
        link.write(msgspec.json.encode(declared))
    os._exit(0)  # it may have left threads behind


if __name__ == "__main__":
    main()
