"""The alerts that fire, and what each target was sent of them. Pure; kept in topic `windows`.

    found -> pending, for as long as the rule's `for` -> firing -> ended -> forgotten once every target knows

A target that was away is sent the newest state alone: an alert that has begun and ended meanwhile is `superseded`.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import quote_plus

from msgspec import convert
from msgspec.structs import asdict

from collector.notices.conditions import OPINION, FoundAlert, fires_at
from collector.notices.series import GAP, Growth, Series
from collector.records.codec import encode
from collector.records.notices import AlarmRecord, Labels, Sent, State, alarm_key
from collector.slo.alerts import DROP, FAULT, Alert
from collector.slo.words import CLOCK, AlertQuery, Text

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LiveWords:
    """The values themselves. See `Words`."""

    series: Series
    labels: Mapping[str, str]
    its_value: float

    def label(self, name: str) -> str:
        return self.labels.get(name, "")

    def quoted(self, name: str) -> str:
        return quote_plus(self.label(name))

    def value(self, shape: str) -> str:
        return shown(self.its_value, shape)

    def ask(self, query: AlertQuery | str, shape: str) -> str:
        """Raises LookupError: only Prometheus could answer."""
        if isinstance(query, str):
            raise LookupError(f"only Prometheus knows {query}")
        if query.is_increase:
            growth = Growth(query.family, tuple(self.labels), tuple(query.labels.items()))
            grown = self.series.grown(growth)
            return shown(grown.get(tuple(self.labels.values()), 0.0), shape)
        match = {**self.labels, **query.labels}
        value = self.series.largest(query.family, (), match).get(())
        if value is None:
            return UNKNOWN
        ago = max(0, int(self.series.now - value))
        return shown(value, shape) + (f", {_duration(ago)} ago" if shape == CLOCK else "")

    def each(self, query: AlertQuery, text: Text, otherwise: str = "") -> str:
        match = {name: self.label(name) for name in query.of}
        rows = self.series.largest(query.family, query.by, {**match, **query.labels})
        if query.where is not None:
            also = self.series.largest(query.where, query.by, match)
            rows = {group: value for group, value in rows.items() if also.get(group, 0.0) > 0}
        texts = (
            text(LiveWords(self.series, dict(zip(query.by, group, strict=True)), value))
            for group, value in sorted(rows.items())
        )
        return "".join(texts) if rows else otherwise

    def when(self, label: str, texts: Mapping[str, str], otherwise: str = "") -> str:
        return texts.get(self.label(label), otherwise)

    def given(self, label: str, text: str, otherwise: str = "") -> str:
        return text if self.label(label) else otherwise

    def above(self, limit: float, text: str, otherwise: str = "") -> str:
        return text if self.its_value > limit else otherwise


def shown(value: float, shape: str) -> str:
    if shape == CLOCK:
        return f"{datetime.fromtimestamp(int(value), UTC):%H:%M} UTC"
    if shape == "humanizeDuration":
        return _duration(int(value))
    return shape % value


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d {hours}h {minutes}m {rest}s"
    if hours:
        return f"{hours}h {minutes}m {rest}s"
    return f"{minutes}m {rest}s" if minutes else f"{rest}s"


Result = Literal["sent", "retried", "superseded", "dropped"]
LONGEST = 3600.0
"""Seconds for which a notice is tried."""
MOST_WAITING = 256  # notices of one target that wait at the same time


@dataclass(slots=True, kw_only=True)
class RaisedAlert:
    labels: Labels
    since: float  # log time from which its expression holds
    fires: float = 0.0  # log time at which its `for` is over
    start: float | None = None  # when it began to fire; None: its `for` is not over
    end: float | None = None
    summary: str = ""
    description: str = ""
    page: str = ""
    sent: dict[str, Sent] = field(default_factory=dict[str, Sent])
    waits: dict[str, float] = field(default_factory=dict[str, float])
    """By target, since when it waits for the state."""
    sending: set[str] = field(default_factory=set[str])
    """Targets to which a message about it is under way: whether they know is not known yet."""

    @property
    def state(self) -> State:
        return "firing" if self.end is None else "resolved"


class Alarms:
    def __init__(self, targets: Mapping[str, Callable[[Labels], bool]]) -> None:
        """`targets`: which alerts each is sent."""
        self._targets = targets
        self._alarms: dict[Labels, RaisedAlert] = {}
        self._changed: set[Labels] = set()
        self._restored: set[Labels] = set()
        self._kept_until: float | None = None
        self.counts: Counter[tuple[str, Result]] = Counter()
        """By (target, result), what the caller has not counted yet."""

    def restore(self, records: Iterable[AlarmRecord]) -> None:
        for each in records:
            alarm = RaisedAlert(since=each.start, **asdict(each))
            alarm.sent = {name: sent for name, sent in each.sent.items() if name in self._targets}
            self._alarms[each.labels] = alarm
        self._restored = {*self._alarms}
        self._changed |= self._restored

    def look(self, found: Iterable[FoundAlert], series: Series) -> None:
        """What holds at log time `series.now`.

        An alert of before a restart ends five minutes after the first look at the earliest: what the process has not
        read back yet is not an end.
        """
        now = series.now
        self._kept_until = now + GAP if self._kept_until is None else self._kept_until
        holding = {self._hold(each, series) for each in found if self._may_hold(each)}
        self._restored -= holding
        kept = self._restored if now < self._kept_until else frozenset[Labels]()
        for labels, alarm in [*self._alarms.items()]:
            if labels not in holding and labels not in kept:
                _hush(alarm, series)
                self._end(alarm, now)
        for target in self._targets:
            self._wait(target, now)

    def due(self, target: str) -> list[RaisedAlert]:
        """What the target is to be sent, ends first, then in the order in which they began."""
        alarms = [each for each in self._alarms.values() if self._is_due(target, each)]
        return sorted(alarms, key=lambda each: (_place(each), each.start, each.labels))

    def wait(self, now: float, most: float) -> float:
        """Seconds until something that holds begins to fire, `most` at most."""
        waits = (each.fires - now for each in self._alarms.values() if each.start is None)
        return min((each for each in waits if 0 < each < most), default=most)

    def known(self, target: str) -> list[RaisedAlert]:
        return [
            each
            for each in self._alarms.values()
            if each.state == "firing" and each.sent.get(target) == "firing"
        ]

    def was_sent(self, target: str, alarm: RaisedAlert, state: State) -> None:
        self._settle(target, alarm, state, "sent")

    @contextmanager
    def sending(self, target: str, alarms: Iterable[RaisedAlert]) -> Generator[None]:
        """While a message about these is under way, none that ends is forgotten: the target may know of it then."""
        sent = tuple(alarms)
        for each in sent:
            each.sending.add(target)
        try:
            yield
        finally:
            for each in sent:
                each.sending.discard(target)
                if each.end is not None and target not in each.sent:
                    self._supersede(target, each)
                    self._changed.add(each.labels)

    def drop(self, target: str, alarm: RaisedAlert) -> None:
        state = "dropped" if alarm.state == "firing" else "resolved"
        self._settle(target, alarm, state, "dropped")

    def expire(self, target: str, now: float) -> int:
        """Drop what could not be sent for an hour; how many these were."""
        old = [each for each in self.due(target) if now - each.waits.get(target, now) > LONGEST]
        for each in old:
            self.drop(target, each)
        return len(old)

    def pending(self) -> dict[bytes, bytes | None]:
        """By key, the records that changed since the last call; None: every target knows that it is over."""
        records: dict[bytes, bytes | None] = {}
        for labels in self._changed:
            alarm = self._alarms.get(labels)
            if alarm is not None and self._is_settled(alarm):
                del self._alarms[labels]
                alarm = None
            records[alarm_key(labels)] = None if alarm is None else _record(alarm)
        self._changed.clear()
        return records

    def _may_hold(self, found: FoundAlert) -> bool:
        """A drop does not begin to fire beside a fault that will; one that fires goes on until the fault does."""
        return not found.only_goes_on or any(
            each.start is not None
            and each.end is None
            and is_of(each, found.alert, found.labels)
            and dict(each.labels).get("scope") == found.labels["scope"]
            for each in self._alarms.values()
        )

    def _hold(self, found: FoundAlert, series: Series) -> Labels:
        now = series.now
        words = LiveWords(series, found.labels, found.value)
        own = {"alertname": found.alert.name, "severity": found.alert.severity(words)}
        labels = tuple(sorted({**found.labels, **own}.items()))
        since = now if found.since is None else min(now, found.since)
        alarm = self._alarms.setdefault(labels, RaisedAlert(labels=labels, since=since))
        alarm.summary = found.alert.summary(words)
        alarm.description = found.alert.description(words)
        alarm.page = found.alert.page(words)
        if alarm.end is not None:
            self._go_on(alarm, now)
        elif alarm.start is None:
            hold = found.alert.hold * 60
            alarm.fires = alarm.since + hold if found.since is None else fires_at(alarm.since)
            if now < alarm.fires:
                return labels
            alarm.start = now
            self._changed.add(labels)
        return labels

    def _go_on(self, alarm: RaisedAlert, now: float) -> None:
        """For a target that was not sent the end there was none; for the others it fires once more."""
        for target in self._targets:
            if self._is_due(target, alarm):
                self._supersede(target, alarm)
        alarm.sent = {name: sent for name, sent in alarm.sent.items() if sent == "firing"}
        alarm.start, alarm.end = now, None
        self._changed.add(alarm.labels)

    def _end(self, alarm: RaisedAlert, now: float) -> None:
        if alarm.start is None:
            del self._alarms[alarm.labels]
        elif alarm.end is None:
            for target in self._targets:
                if self._is_due(target, alarm) and target not in alarm.sending:
                    self._supersede(target, alarm)
            alarm.end = now
            self._give_way(alarm)
            self._changed.add(alarm.labels)

    def _give_way(self, drop: RaisedAlert) -> None:
        """The end of a drop names the faults of its agent that fire instead."""
        ended = dict(drop.labels)
        faults = [
            each.summary
            for each in self._alarms.values()
            if each.start is not None and each.end is None and is_of(each, FAULT, ended)
        ]
        if faults and ended["alertname"] == DROP.name:
            drop.summary = f"{drop.summary}. It is now: {'; '.join(sorted(faults))}"
            drop.description = f"{drop.description} It is now: {'; '.join(sorted(faults))}."

    def _supersede(self, target: str, alarm: RaisedAlert) -> None:
        alarm.waits.pop(target, None)
        self.counts[target, "superseded"] += 1

    def _settle(self, target: str, alarm: RaisedAlert, sent: Sent, result: Result) -> None:
        alarm.sent[target] = sent
        alarm.waits.pop(target, None)
        self.counts[target, result] += 1
        self._changed.add(alarm.labels)

    def _wait(self, target: str, now: float) -> None:
        """Note since when each notice waits; what does not fit the queue is dropped."""
        due = self.due(target)
        for each in due[:MOST_WAITING]:
            each.waits.setdefault(target, now)
        for each in due[MOST_WAITING:]:
            self.drop(target, each)

    def _is_due(self, target: str, alarm: RaisedAlert) -> bool:
        if alarm.start is None or not self._targets[target](alarm.labels):
            return False
        sent = alarm.sent.get(target)
        return sent == "firing" if alarm.state == "resolved" else sent not in ("firing", "dropped")

    def _is_settled(self, alarm: RaisedAlert) -> bool:
        is_over = alarm.end is not None and not alarm.sending
        return is_over and not any(self._is_due(target, alarm) for target in self._targets)


def _hush(drop: RaisedAlert, series: Series) -> None:
    """The end of a drop in which the judge sees no loss says so."""
    match = {name: dict(drop.labels).get(name, "") for name in ("service", "agent")}
    is_drop = dict(drop.labels)["alertname"] == DROP.name
    if is_drop and drop.end is None and series.largest(OPINION, (), match).get(()) == 0:
        drop.description = f"{drop.description} It is quiet now: the judge sees no loss."


def is_of(alarm: RaisedAlert, alert: Alert, of: Mapping[str, str]) -> bool:
    """Whether it is this alert, of the same agent as what has the labels `of`."""
    labels = {**dict(alarm.labels)}
    same = all(labels.get(name) == of.get(name) for name in ("service", "agent"))
    return same and labels["alertname"] == alert.name


def _place(alarm: RaisedAlert) -> int:
    """A fault first, then the end of the drop that gives way to it, then what fires."""
    if alarm.end is not None:
        return 1
    return 0 if dict(alarm.labels)["alertname"] == FAULT.name else 2


def _record(alarm: RaisedAlert) -> bytes | None:
    """None: its `for` is not over."""
    if alarm.start is None:
        return None
    return encode(convert(alarm, AlarmRecord, from_attributes=True))
