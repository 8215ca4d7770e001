"""The page, /api/v1/agents and /metrics show the same number for the same thing, while spans come and after it."""

import re
import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from collector.api.page.views import NOTHING, score
from tests.support.agents import Turn, request, spans
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

SETTINGS = (
    "windows.trace.root_grace=200ms",
    "embedder.kind=none",
    "windows.agent.sessions=3",  # NEWEST; of more sessions in the index: means over all of them are other numbers
    "windows.agent.version_silence=1s",
)
SERVICES = 3
ROUNDS = 300
COMPARISONS = 50
NEWEST = 3
NAMES = ("reliability", "consistency", "sessions")
RELEASED = "shop-released"
SERIES = re.compile(
    r"spanwise_(agent_reliability_ratio|agent_consistency_ratio|version_sessions|version_last_session_timestamp_seconds)"
)
LABEL = re.compile(r'(\w+)="([^"]*)"')
ROW = re.compile(
    r'<tr class="\w+" data-service="(.*?)" data-agent="(.*?)" data-version="(.*?)">(.*?)</tr>',
    re.DOTALL,
)

Version = tuple[str, str, str]
Numbers = dict[Version, dict[str, float | None]]


def conversation(service: str, session: str, version: str, *, fails: bool) -> bytes:
    """A session of one turn, of that version of the agent `support`."""
    made = spans(Turn(service=service, session=session, number=0, fails=fails))
    made[-1].attributes.add(key="gen_ai.agent.version").value.string_value = version
    return request(service, made)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("same") / "data", *SETTINGS) as running:
        yield running


def send_round(service: Service, number: int, *, fails: bool) -> None:
    """A session of each agent and version; that of version 1 of the first one never fails."""
    for shop in range(SERVICES):
        for version in ("1", "2"):
            bad = fails and (shop, version) != (0, "1")
            session = f"{shop}-{number}-{version}"
            send(service.grpc, conversation(f"shop-{shop}", session, version, fails=bad))


def load(service: Service, enough: threading.Event) -> None:
    for number in range(ROUNDS):
        if enough.is_set():
            break
        send_round(service, number, fails=number % 3 == 0)


def gauges(service: Service) -> Numbers:
    found: Numbers = {}
    for series, value in service.metrics().items():
        if named := SERIES.match(series):
            labels = dict(LABEL.findall(series))
            key = (labels["service"], labels["agent"], labels["agent_version"])
            name = named[1].removeprefix("agent_").removeprefix("version_").removesuffix("_ratio")
            found.setdefault(key, {})[name] = value
    return found


def api(service: Service) -> Numbers:
    """What it knows; null is unknown."""
    items: list[dict[str, Any]] = service.get("/api/v1/agents?limit=500")["items"]
    return {
        (row["service"], row["agent"], row["agent_version"]): {name: row[name] for name in NAMES}
        for row in items
        if row["sessions"] is not None
    }


def page(service: Service) -> dict[Version, list[str]]:
    """Reliability, consistency and sessions as they are read there."""
    found: dict[Version, list[str]] = {}
    for *version, row in ROW.findall(service.text("/")):
        sessions = re.search(r'<td class="number">(?:<a [^>]*>)?([^<]+)<', row)
        assert sessions is not None
        if sessions[1] != NOTHING:
            found[version[0], version[1], version[2]] = [
                *re.findall(r"<b>(\S+)</b>", row),
                sessions[1],
            ]
    return found


def known(numbers: Numbers) -> Numbers:
    """Without the time of the newest session, which tells apart moments with the same numbers."""
    return {key: {name: each.get(name) for name in NAMES} for key, each in numbers.items()}


def as_the_page_says(numbers: Numbers) -> dict[Version, list[str]]:
    return {
        key: [score(each["reliability"]), score(each["consistency"]), f"{each['sessions']:.0f}"]
        for key, each in numbers.items()
    }


def agreed(service: Service) -> Numbers | None:
    """The numbers once the newest sessions are in them and they are the same everywhere."""
    scored = {each["session_id"] for each in service.signals() if each["scope"] == "session"}
    last = {f"{n}-{ROUNDS + NEWEST - 1}-{v}" for n in range(SERVICES) for v in ("1", "2")}
    numbers = gauges(service)
    is_same = known(numbers) == api(service) and as_the_page_says(numbers) == page(service)
    return known(numbers) if last <= scored and is_same else None


def compare(service: Service) -> int:
    """How many versions stood still between two scrapes, and were shown with their numbers in between."""
    before, shown, after = gauges(service), api(service), gauges(service)
    still = [key for key in before if before[key] == after.get(key) and key in shown]
    for key in still:
        assert shown[key] == known(before)[key], key
    return len(still)


def test_under_load_the_same_number_is_shown_everywhere(service: Service) -> None:
    enough = threading.Event()
    sender = threading.Thread(target=load, args=(service, enough))
    sender.start()
    compared = 0
    try:
        while sender.is_alive() and compared < COMPARISONS:
            compared += compare(service)
    finally:
        enough.set()
        sender.join(60)
    assert compared

    for number in range(ROUNDS, ROUNDS + NEWEST):
        send_round(service, number, fails=True)
    all_versions = service.wait_for("all three agree", lambda: agreed(service))

    final = {key: each for key, each in all_versions.items() if key[0] != RELEASED}
    assert final.keys() == {
        (f"shop-{n}", "support", v) for n in range(SERVICES) for v in ("1", "2")
    }
    assert {each["sessions"] for each in final.values()} == {NEWEST}
    assert len({each["reliability"] for each in final.values()}) > 1


def test_a_fixed_release_ends_the_version_before_it_everywhere(service: Service) -> None:
    for number in range(3):
        send(service.grpc, conversation(RELEASED, f"bad-{number}", "bad", fails=True))
    bad, fixed = ((RELEASED, "support", version) for version in ("bad", "fixed"))
    service.wait_for("the bad release has its series", lambda: bad in gauges(service))
    mean = (
        'spanwise_window_mean_ratio{agent="support",evaluator="agent_reliability",'
        f'scope="session",service="{RELEASED}"}}'
    )
    assert service.metrics()[mean] < 1
    numbers = count()

    def one_more_and_the_bad_one_is_gone() -> bool:
        session = f"good-{next(numbers)}"
        send(service.grpc, conversation(RELEASED, session, "fixed", fails=False))
        found = gauges(service)
        return fixed in found and bad not in found

    service.wait_for("the bad release has ended", one_more_and_the_bad_one_is_gone)

    shown = api(service)
    assert bad not in shown
    assert bad not in page(service), "its row says that it has ended, and keeps its last mean"
    assert shown[fixed]["reliability"] == 1
    assert service.metrics()[mean] == 1
