"""What the detectors of a process hold, and what they must hold by the definition."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from collector.log.port import SIGNALS
from collector.records.signal import Signal, decode_signal, unix_seconds
from collector.records.windows import SettlingScore
from collector.watch.drift.detector import DriftDetector
from collector.watch.drift.detectors import DriftDetectors
from collector.watch.settling import digest_of
from collector.watch.windows.target import Labels
from evaluators.formulas.own_past import OwnPast
from evaluators.formulas.past_limits import PastLimits
from tests.support.faulty_log import FaultyLog
from tests.support.signals import published_in


def shown(past: OwnPast) -> tuple[object, ...]:
    """The whole of a past, but how it is stored: its sums and alarms, and every score of its history."""
    state = past.state()
    strata = past._history._strata
    return (
        *(msgspec.msgpack.encode(each) for each in (state.worse, state.better, state.versions)),
        (state.time, state.ranked, state.history.begun, state.history.number),
        {name: each.pack(0.0) for name, each in strata.items() if len(each)},
        past.history_samples,
    )


def held(drops: DriftDetectors) -> dict[Labels, tuple[object, ...]]:
    """Of each label set that anything has entered: its past, and who entered, in order."""
    return {
        each.labels: (list(each.settling.entered._subjects), shown(each.past))
        for each in drops
        if each.settling.entered.count
    }


def settling(watch: DriftDetector) -> set[SettlingScore]:
    """What has not settled yet."""
    return set(watch.settling.held)


def defined(
    log: FaultyLog, limits: PastLimits, *, settle: float, passed: float
) -> dict[Labels, tuple[object, ...]]:
    """As `held`, computed from all signals of the log at once: a score enters when its subject has settled."""
    subjects: defaultdict[tuple[str, ...], list[tuple[float, Signal]]] = defaultdict(list)
    for each in published_in(log.history(SIGNALS)):
        signal = decode_signal(each.json)
        if signal.scope == "session":
            key = (signal.service, signal.evaluator, signal.session_id)
            subjects[key].append((each.time, signal))
        elif each.header.first:
            key = (signal.service, signal.evaluator, signal.trace_id or "")
            subjects[key].append((each.time, signal))
    entering: defaultdict[Labels, list[tuple[float, str, Signal]]] = defaultdict(list)
    for (service, evaluator, subject), updates in subjects.items():
        found = _settled(updates, settle)
        if found is not None and found[0] < passed:
            due, signal = found
            labels = Labels(service, signal.agent, evaluator, signal.scope)
            entering[labels].append((due, subject, signal))
    return {labels: _fed(each, limits) for labels, each in entering.items()}


def _settled(updates: Iterable[tuple[float, Signal]], settle: float) -> tuple[float, Signal] | None:
    """When a subject has settled, and the score with which it did."""
    latest: tuple[float, Signal] | None = None
    for time, signal in updates:
        if latest is not None:
            due, earlier = latest
            if due <= time:
                break
            if (signal.revision, signal.final) <= (earlier.revision, earlier.final):
                continue
        final = signal.final or signal.scope == "trace"
        due = time if final else time + settle
        latest = None if signal.score is None else (due, signal)
    return latest


def _fed(entering: list[tuple[float, str, Any]], limits: PastLimits) -> tuple[object, ...]:
    past = OwnPast(limits)
    order = sorted(entering, key=lambda each: each[:2])
    for due, subject, signal in order:
        seen = unix_seconds(signal.time)
        past.feed(subject, signal.score, due, signal.agent_version or "", seen=seen)
    return [digest_of(subject) for _, subject, _ in order], shown(past)


def same(one: Mapping[Labels, tuple[object, ...]], other: Mapping[Labels, Any]) -> bool:
    """Whether two of them are equal, by label set so that a failure is readable."""
    for labels in one.keys() | other.keys():
        assert one.get(labels) == other.get(labels), labels
    return True
