"""The alerts of `notify` and those of `spanwise slo` are the same, over the same series."""

import re
from collections.abc import Iterator, Mapping

import pytest

from collector.config.notify import LiveAlert, Notify
from collector.notices.alarms import Alarms, RaisedAlert
from collector.notices.conditions import FAMILIES, GROWTHS, LIVE, found_in
from collector.notices.series import Series, SeriesSample
from tests.support.promtool import Scenario, scenarios
from tests.support.table import for_each
from tests.unit.slo.test_texts import SERIES, said

_PART = re.compile(r"(-?[\d.]+|NaN|_|stale)(?:([+-][\d.]+))?(?:x(\d+))?")


def values(text: str) -> list[float | None]:
    """One a minute; None: there is none then."""
    found: list[float | None] = []
    for part in text.split():
        match = _PART.fullmatch(part)
        assert match is not None, part
        first, step, times = match[1], float(match[2] or 0), int(match[3] or 0)
        if first in ("_", "stale"):
            found += [None] * max(1, times)
        else:
            found += [float(first) + step * at for at in range(times + 1)]
    return found


def labels_of(series: str) -> tuple[str, dict[str, str]]:
    """The family and the labels of `family{name="value",...}`."""
    family, _, inside = series.partition("{")
    pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', inside)
    return family, {name: value.replace('\\"', '"') for name, value in pairs}


def minutes(series: Mapping[str, str], last: int) -> Iterator[list[SeriesSample]]:
    """The samples of each minute from 0 to `last`."""
    expanded = [(*labels_of(name), values(text)) for name, text in series.items()]
    for minute in range(last + 1):
        yield [
            SeriesSample(family, labels, value)
            for family, labels, points in expanded
            if minute < len(points) and (value := points[minute]) is not None
        ]


__all__ = ["said"]

NAMES = Notify().alerts
SCENARIOS = scenarios("faults", "drops", "delivery")


def looked_at(scenario: Scenario, time: str) -> dict[str, list[dict[str, str]]]:
    """What fires at that time, by name, with its labels."""
    return _by_name(alarms_at(scenario.series, int(time.removesuffix("m"))))


def alarms_at(given: Mapping[str, str], last: int) -> list[RaisedAlert]:
    series, alarms = Series(GROWTHS), Alarms({"any": lambda _: True})
    for minute, samples in enumerate(minutes(given, last)):
        series.take([each for each in samples if each.family in FAMILIES], 60.0 * minute)
        alarms.look(found_in(series, NAMES), series)
    return [each for each in alarms.due("any") if each.state == "firing"]


def _by_name(alarms: list[RaisedAlert]) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for each in alarms:
        labels = dict(each.labels)
        found.setdefault(labels.pop("alertname"), []).append(labels)
    return found


def _sorted(labels: list[dict[str, str]]) -> list[list[tuple[str, str]]]:
    return sorted(sorted(each.items()) for each in labels)


@for_each("scenario", SCENARIOS)
def test_what_promtool_finds_firing_fires(scenario: Scenario) -> None:
    for time, fires in scenario.fires.items():
        wanted = {name: [dict(each) for each in some] for name, some in fires.items()}
        found = looked_at(scenario, time)

        assert {name: _sorted(some) for name, some in found.items()} == {
            name: _sorted(some) for name, some in wanted.items() if name in NAMES
        }, time


def test_the_scenarios_show_every_live_alert_firing() -> None:
    fired = {name for each in SCENARIOS for fires in each.fires.values() for name in fires}

    assert set(NAMES) <= fired


def test_the_settings_name_the_alerts_that_there_are() -> None:
    assert {each.name for each in LIVE} == set(NAMES) == set(LiveAlert.__args__)


@pytest.mark.process
@pytest.mark.parametrize("name", NAMES)
def test_texts_and_links_are_those_that_prometheus_writes(said: dict[str, str], name: str) -> None:
    mine = {
        (each.summary, each.description, each.page)
        for each in alarms_at(SERIES, 100)
        if dict(each.labels)["alertname"] == name
    }

    assert mine == _annotations(said[name])


def _annotations(printed: str) -> set[tuple[str, str, str]]:
    """(summary, description, page behind its address) of each alert that promtool prints."""
    found: set[tuple[str, str, str]] = set()
    for inside in re.findall(r"Annotations:\{(.*)\}", printed):
        texts = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', inside))
        plain = {key: text.replace('\\"', '"').replace("\\\\", "\\") for key, text in texts.items()}
        page = plain["page"].removeprefix("https://spanwise.example.com/of/us")
        found.add((plain["summary"], plain["description"], page))
    return found
