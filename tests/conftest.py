"""Fixtures that need something outside Python: a real Kafka broker. And each test's tier and turn."""

import gc
import os
import shutil
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

from tests.support import guarded
from tests.support.examples import IS_LONG
from tests.support.kafka.kafka_node import KafkaNode, KafkaNodeError, fetch
from tests.support.processes import missing
from tests.support.tiers import (
    exclusive,
    is_fast,
    is_left_out,
    place,
    refuse_processes,
    turn,
    watched,
)

# The same examples every time, and none fails for being slow beside other work; the long form has new ones.
settings.register_profile(
    "spanwise", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=not IS_LONG
)
settings.load_profile("spanwise")

_LIBS = Path(__file__).parent.parent / ".cache" / "kafka"


def pytest_configure(config: pytest.Config) -> None:
    refuse_processes()
    # pydantic says it of a type of litellm's, in whichever test asks a model first.
    config.addinivalue_line(
        "filterwarnings",
        r"ignore:Item '\w+' on TypedDict class '\w+' is using the `ReadOnly` qualifier:UserWarning",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return is_left_out(collection_path, config.option.markexpr) or None


def pytest_itemcollected(item: pytest.Item) -> None:
    place(item)


def pytest_report_header() -> list[str]:
    return guarded.header()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files of benches go first, then files that start processes, those before others whose tests may take longer.

    A bench has the machine for itself: beside other benches it waits for seconds, beside a file that starts
    processes for minutes, and so does every other worker. Small files are left for the end: otherwise one worker
    begins a file of minutes when the others have nothing left to do.
    """
    guarded.deselect(config, items)
    benches = {each.path for each in items if each.get_closest_marker("bench")}
    long = {each.path for each in items if any(map(each.get_closest_marker, ("e2e", "kafka")))}
    limits: dict[Path, float] = {}
    for each in items:
        timeout = each.get_closest_marker("timeout")
        limits[each.path] = max(limits.get(each.path, 0), timeout.args[0] if timeout else 0)
    items.sort(
        key=lambda each: (each.path not in benches, each.path not in long, -limits[each.path])
    )


def pytest_collection_finish() -> None:
    """Thirteen thousand tests live as long as the process: no look for garbage counts them (half a second each)."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Before the timeout of the test begins, it waits for its turn."""
    with turn(alone=item.get_closest_marker("bench") is not None), watched(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and is_fast(item) and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = (
            f"a test of `make test` is not skipped: mark it `process`. {report.longrepr}"
        )
    return report


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """aiokafka at times leaves a connection to a broker that died to the garbage collector, which says so later.

    It is collected here, where it came from: no other test fails of it.
    """
    if item.get_closest_marker("kafka") is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """Bootstrap servers of a real broker that all tests share: SPANWISE_TEST_KAFKA, else one started from its jars."""
    given = os.environ.get("SPANWISE_TEST_KAFKA")
    if given:
        yield given
        return
    with KafkaNode(_libs()) as node:
        yield node.bootstrap


@pytest.fixture
def kafka_node() -> Iterator[KafkaNode]:
    """A real broker of the test's own, which it may kill and pause."""
    with KafkaNode(_libs()) as node:
        yield node


@pytest.fixture(scope="session")
def kafka_libs() -> Path:
    """For a broker with settings of the test's own."""
    return _libs()


def _libs() -> Path:
    """The folder of the broker's jars (SPANWISE_KAFKA_LIBS, else .cache/kafka), fetched by Maven if need be."""
    libs = Path(os.environ.get("SPANWISE_KAFKA_LIBS") or _LIBS)
    if shutil.which("java") is None:
        _absent("there is no `java` (17 or later) here")
    if not any(libs.glob("kafka_2.13-*.jar")) and shutil.which("mvn") is None:
        _absent(f"there are no broker jars in `{libs}` and no `mvn` to fetch them")
    try:
        with exclusive("kafka"):
            fetch(libs)
    except KafkaNodeError as error:
        _absent(str(error))
    return libs


def _absent(why: str) -> NoReturn:
    missing("KAFKA", f"NO KAFKA, NOT TESTED: {why}; set SPANWISE_TEST_KAFKA=host:port")
