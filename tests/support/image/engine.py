"""A container engine, Docker or Podman, as a test uses it: the same commands of either."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from tests.support.image import stand_in
from tests.support.processes import missing

STAND_IN, RAW = "localhost/spanwise-stand-in:1", "localhost/spanwise-stand-in-files:1"
TRIAL, TRIAL_FILES = "localhost/spanwise-trial:1", "localhost/spanwise-trial-files:1"


class Engine:
    """One that answers here. Every command is bounded in time and raises AssertionError with its output if it fails."""

    def __init__(self, name: str, storage: Path | None = None) -> None:
        """Podman keeps images and containers in `storage`, if that is given."""
        self._name = name
        self._before: list[str] = []
        self._build: list[str] = []
        self._run: list[str] = []
        if storage is not None:
            self._before = ["--root", f"{storage}/images", "--runroot", f"{storage}/run"]
        if name == "podman":
            # For root without systemd, without the right to raise limits, and with both versions of control groups.
            if os.geteuid() == 0:
                self._before += ["--cgroup-manager", "cgroupfs"]
            if shutil.which("runc") is not None:
                self._before += ["--runtime", "runc"]
            self._build = ["--isolation", "chroot", "--network", "host", "--format", "docker"]
            self._build += ["--layers=false"]
            self._run = ["--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"]

    def call(
        self, *arguments: str, stdin: str | None = None, timeout: float = 60.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """`docker ARGUMENTS`."""
        done = subprocess.run(
            [self._name, *self._before, *arguments],
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode:
            said = (done.stdout + done.stderr)[-4000:]
            raise AssertionError(f"{self._name} {' '.join(arguments)}: {done.returncode}\n{said}")
        return done

    def build(self, context: Path, tag: str, arguments: Mapping[str, str]) -> None:
        """An image of that folder's Dockerfile."""
        given = [
            part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")
        ]
        self.call("build", *self._build, *given, "-t", tag, str(context), timeout=800)

    def trial(self, folder: Path) -> str:
        """Build an image of one command and run it; returns what went wrong, empty if the engine can do both here."""
        files, context = folder / "trial.tar", folder / "trial"
        stand_in.write_command(files, "true")
        context.mkdir()
        (context / "Dockerfile").write_text(f'FROM {TRIAL_FILES}\nRUN ["/bin/true"]\n')
        try:
            self.call("import", str(files), TRIAL_FILES)
            self.build(context, TRIAL, {})
            self.call("run", "--rm", "--network", "none", *self._run, TRIAL, "/bin/true")
        except (AssertionError, subprocess.TimeoutExpired) as error:
            return str(error)
        return ""

    def base(self, wanted: str, folder: Path) -> str:
        """The name of the base image; `stand-in` is made of this machine's files."""
        if wanted != "stand-in":
            return wanted
        files, context = folder / "base.tar", folder / "base"
        stand_in.write(files)
        self.call("import", str(files), RAW, timeout=120)
        files.unlink()
        context.mkdir()
        (context / "Dockerfile").write_text(stand_in.containerfile(RAW))
        self.build(context, STAND_IN, {})
        return STAND_IN

    def run(self, name: str, image: str, *options: str) -> None:
        """Start a container in the background."""
        self.call("run", "-d", "--name", name, *self._run, *options, image)

    def settings(self, image: str) -> Any:
        """The configuration that the image brings."""
        answer = self.call("image", "inspect", "--format", "{{json .Config}}", image)
        return json.loads(answer.stdout)

    def healthcheck(self, image: str) -> list[str]:
        """The command that the image names for it. Podman shows it beside the configuration."""
        for where in (".Config.Healthcheck", ".HealthCheck"):
            answer = self.call(
                "image", "inspect", "--format", f"{{{{json {where}}}}}", image, check=False
            )
            if answer.returncode == 0 and answer.stdout.strip() != "null":
                kind, *command = json.loads(answer.stdout)["Test"]
                assert kind == "CMD"
                return command
        raise AssertionError(f"{image} has no HEALTHCHECK")

    def exit_code(self, name: str) -> int:
        """Of a container that has ended."""
        answer = self.call("container", "inspect", "--format", "{{.State.ExitCode}}", name)
        return int(answer.stdout)


class Container:
    """One that runs."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self.name = name

    def call(
        self, *command: str, stdin: str | None = None, check: bool = True, port: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in it; `port`: as if that were its admin port."""
        options = ["-i"] if stdin is not None else []
        if port is not None:
            options += ["-e", f"SPANWISE_ADMIN__PORT={port}"]
        return self._engine.call("exec", *options, self.name, *command, stdin=stdin, check=check)

    def wait_for(self, what: str, holds: Callable[[], Any], timeout: float = 60.0) -> Any:
        """Poll until `holds()` is truthy; its value."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if value := holds():
                return value
            time.sleep(0.3)
        logs = self._engine.call("logs", self.name, check=False)
        raise AssertionError(
            f"{what}: not within {timeout:g} s\n{logs.stdout}{logs.stderr}"[-4000:]
        )

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self._engine.call("stop", "-t", "30", self.name)
        return self._engine.exit_code(self.name)

    def remove(self) -> None:
        """It goes, with its volume of the same name."""
        self._engine.call("rm", "-f", self.name, check=False)
        self._engine.call("volume", "rm", "-f", self.name, check=False)


def engine_name() -> str | None:
    """Docker, else Podman, else None."""
    for name in ("docker", "podman"):
        if shutil.which(name) is None:
            continue
        asked = subprocess.run([name, "info"], capture_output=True, timeout=60, check=False)
        if asked.returncode == 0:
            return name
    return None


def not_tested(why: str) -> NoReturn:
    """Skip, or fail where SPANWISE_REQUIRE_ENGINE=1 says that an engine is here."""
    missing("ENGINE", f"NO CONTAINER ENGINE, THE IMAGE IS NOT TESTED: {why}")


@contextmanager
def engine(folder: Path) -> Generator[Engine]:
    """One that builds and runs here. Root's Podman keeps everything in memory (2 GB) until the end: that is three
    times as quick as a disk, and leaves nothing behind.
    """
    name = engine_name() or not_tested("neither `docker info` nor `podman info` answers")
    with _stored(name) as here:
        if why := here.trial(folder):
            not_tested(why)
        yield here


@contextmanager
def _stored(name: str) -> Generator[Engine]:
    """Podman takes no path of more than 50 characters for what it runs."""
    if name != "podman" or os.geteuid() != 0:
        yield Engine(name)
        return
    storage = Path(tempfile.mkdtemp(prefix="image-"))
    command = ["mount", "-t", "tmpfs", "-o", "size=6g", "tmpfs", str(storage)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        storage.rmdir()
        not_tested(mounted.stderr)
    try:
        yield Engine(name, storage)
    finally:
        subprocess.run(["umount", "--lazy", str(storage)], check=True)
        # A process of podman that has not ended yet may write there once more.
        shutil.rmtree(storage, ignore_errors=True)
