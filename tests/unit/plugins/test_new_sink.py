"""A new sink: its section in the configuration, one file, one line in `collector.service.sinks.SINKS`.

A sink that is forgotten in one of the places that walk them fails a test of this file, which names the place.
"""

import pkgutil
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Self

import pytest

from collector import sinks as folder
from collector.base.errors import ConfigError
from collector.config.crosscheck import crosscheck
from collector.config.section import Section
from collector.config.sinks import Sinks
from collector.config.tree import Config
from collector.doctor.connectivity import connect_all
from collector.log.memory import MemoryLog
from collector.log.port import SIGNALS, Commit
from collector.records.signal_batch import Published
from collector.service import sinks
from collector.service.logs import groups
from tests.support.signals import new, signal

ROOT = Path(__file__).parents[3]
NAME = "sink_of_this_test"


class SectionOfThisTest(Section):
    url: str = "http://127.0.0.1"
    is_there: bool = True

    def conflicts(self, path: str) -> Iterator[str]:
        if "://" not in self.url:
            yield f"{path}.url: expected a URL"


class SinksOfThisTest(Sinks):
    sink_of_this_test: SectionOfThisTest | None = None


class WithSink(Config):
    sinks: Sinks = SinksOfThisTest(sink_of_this_test=SectionOfThisTest())


class SinkOfThisTest:
    name: ClassVar[str] = NAME

    @classmethod
    def configured(cls, config: Config) -> Self | None:
        section = getattr(config.sinks, cls.name)
        return None if section is None else cls()

    @classmethod
    async def reachable(cls, config: Config) -> str | None:
        section = getattr(config.sinks, cls.name)
        return None if section.is_there else f"sinks.{NAME}.url: {section.url} does not answer"

    async def deliver(self, signals: Sequence[Published]) -> None:
        pass

    async def close(self, deadline: float) -> None:
        pass


def configured(folder: Path, **section: object) -> WithSink:
    chosen = SinksOfThisTest.model_validate({NAME: section})
    return WithSink(data_dir=folder, sinks=chosen)


@pytest.fixture
def _listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line."""
    monkeypatch.setattr(sinks, "SINKS", {**sinks.SINKS, NAME: lambda: SinkOfThisTest})


@pytest.mark.usefixtures("_listed")
async def test_the_log_holds_signals_until_the_new_sink_has_them() -> None:
    config = WithSink()
    log = MemoryLog(clock=lambda: 0.0, groups=groups(config))
    await log.write([new(signal(trace=f"t-{number}")) for number in range(5)])
    for group in groups(config)[SIGNALS] - {f"sink.{NAME}"}:
        await log.write((), [Commit(group=group, topic=SIGNALS, partition=0, offset=5)])

    reader = log.read(f"sink.{NAME}", SIGNALS)
    await reader.poll()

    assert len((await reader.poll()).records) == 5
    assert [type(each).__name__ for each in sinks.sinks(config)] == ["JsonlSink", "SinkOfThisTest"]


@pytest.mark.usefixtures("_listed")
def test_validate_connect_tries_the_new_sink(tmp_path: Path) -> None:
    assert connect_all(configured(tmp_path)) == ("data_dir", "sinks.jsonl", f"sinks.{NAME}")

    with pytest.raises(ConfigError, match=rf"^sinks.{NAME}.url: http://x does not answer$"):
        connect_all(configured(tmp_path, url="http://x", is_there=False))


def test_what_does_not_fit_and_what_has_no_line_is_said_at_the_start(tmp_path: Path) -> None:
    assert crosscheck(configured(tmp_path)) == []
    assert crosscheck(configured(tmp_path, url="x")) == [f"sinks.{NAME}.url: expected a URL"]
    with pytest.raises(LookupError, match=rf"`sinks.{NAME}` has no sink"):
        groups(WithSink())


def test_every_section_has_its_sink_and_no_sink_of_the_folder_is_forgotten_in_its_line() -> None:
    names = [f"{folder.__name__}.{each.name}" for each in pkgutil.iter_modules(folder.__path__)]
    declared = {
        value
        for name in names
        for value in vars(import_module(name)).values()
        if isinstance(value, type) and value.__module__ == name
        if all(hasattr(value, each) for each in ("name", "configured", "deliver"))
    }

    assert {kind().name for kind in sinks.SINKS.values()} == set(Sinks.model_fields)
    assert set(sinks.SINKS) == set(Sinks.model_fields)
    assert declared == {kind() for kind in sinks.SINKS.values()}


@pytest.mark.parametrize("name", sinks.SINKS)
def test_every_sink_has_its_row_in_the_docs_and_its_run_of_the_conformance_suite(name: str) -> None:
    page = (ROOT / "docs" / "signals.md").read_text(encoding="utf-8")
    suite = ROOT / "tests" / "conformance" / f"test_sink_{name}.py"

    assert f"\n| `sinks.{name}` | " in page
    assert "SinkContract" in suite.read_text(encoding="utf-8")
