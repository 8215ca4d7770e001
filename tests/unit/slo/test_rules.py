"""The rules under promtool: every alert is seen firing, and seen silent where nothing is wrong."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from collector.export.label_counts import outcome_of
from collector.notices.alarms import Result
from collector.records.signal_batch import made
from collector.records.standing import FAULTS_THAT_PAGE
from collector.service.rooms import ASSEMBLY, SCORING
from collector.slo.alerts import ALERTS, Alert
from collector.slo.rules import RuleGroup, rules
from evaluators.model import Closed, Reason
from tests.support.declared_families import declared_families
from tests.support.promtool import Scenario, run, scenarios, write_case
from tests.support.signals import failed, signal
from tests.support.table import for_each

_SELECTOR = re.compile(r"\b(spanwise_[a-z_]+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)(=~|!=|!~|=)(?:\\?"((?:[^"\\])*)\\?"|%q)')


class Selector(NamedTuple):
    """One family and what its labels are asked for."""

    family: str
    matchers: tuple[tuple[str, tuple[str, ...]], ...]
    """By label: the values that it must have (or must not have); none where the alert's own are put in."""


def selectors(groups: Sequence[RuleGroup]) -> Iterator[Selector]:
    """Of expressions and texts."""
    for group in groups:
        for rule in group["rules"]:
            for text in (rule["expr"], *rule.get("annotations", {}).values()):
                for family, inside in _SELECTOR.findall(text):
                    yield Selector(
                        family,
                        tuple(
                            (name, tuple(values.split("|")) if values else ())
                            for name, _, values in _MATCHER.findall(inside)
                        ),
                    )


OBJECTIVES: Mapping[str, float] = {"tool_correctness": 0.95, "work_baseline": 0.3}
PLAIN = rules()
FULL = rules(0.9, OBJECTIVES)
CASES: Mapping[str, tuple[Sequence[RuleGroup], Sequence[Scenario]]] = {
    "plain": (PLAIN, scenarios("faults", "drops", "delivery")),
    "with-objectives": (FULL, scenarios("objectives")),
    "by-name-alone": (rules(None, OBJECTIVES), scenarios("faults")),
}


@pytest.mark.process
def test_every_alert_fires_and_is_silent_as_the_scenarios_say(tmp_path: Path) -> None:
    files = [
        write_case(tmp_path, name, *case, every="2m" if case[0] is FULL else "1m")
        for name, case in CASES.items()
    ]

    done = run("test", "rules", *files, folder=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_for_exported_objectives_differ_only_in_where_the_objective_comes_from() -> None:
    exported, common = (
        {
            rule.get("alert", rule.get("record", "")): rule
            for group in groups
            for rule in group["rules"]
        }
        for groups in (rules(exported=True), rules(0.9))
    )

    assert exported.keys() == common.keys()
    assert {name for name, rule in exported.items() if rule != common[name]} == {
        "agent:error_budget:ratio"
    }


@for_each("alert", ALERTS)
def test_the_scenarios_show_it_firing_and_silent(alert: Alert) -> None:
    moments = [
        fires.get(alert.name)
        for _, some in CASES.values()
        for each in some
        for fires in each.fires.values()
    ]
    fired = [labels for each in moments for labels in each or ()]

    assert fired
    assert not all(moments)
    assert {frozenset(each) for each in fired} <= {
        frozenset({*alert.labels, "severity"}),
        frozenset({"severity"}),
        frozenset({*alert.labels, "severity"} - {"tool"}),  # a fault of the agent has none
    }


DECLARED = declared_families()
SELECTORS = set(selectors(rules(0.9, {"confidence": 0.8})))
WORDS: Mapping[tuple[str, str], Set[str | None]] = {
    ("spanwise_evaluations_total", "outcome"): {
        outcome_of(made(each).header)
        for each in (
            signal(success=True),
            signal(success=False),
            failed(),
            signal(score=None, outcome="not_applicable", success=None),
        )
    },
    ("spanwise_evaluations_total", "sample"): {signal().sample},
    ("spanwise_evaluations_total", "evaluator"): {"confidence"},
    ("spanwise_window_samples", "evaluator"): {"confidence"},
    ("spanwise_evaluations_skipped_total", "reason"): set(get_args(Reason)),
    ("spanwise_traces_closed_total", "reason"): set(get_args(Closed)),
    ("spanwise_late_spans_total", "action"): {"revised", "duplicate", "ignored", "session_changed"},
    ("spanwise_last_score_timestamp_seconds", "service"): {"_other"},
    ("spanwise_fault_detected", "fault"): set(FAULTS_THAT_PAGE),
    ("spanwise_fault_uses", "period"): {"before", "since"},
    ("spanwise_fault_failures", "period"): {"before", "since"},
    ("spanwise_second_opinion_mean_ratio", "period"): {"before", "since"},
    ("spanwise_log_lag_seconds", "group"): {ASSEMBLY, SCORING},
    ("spanwise_signals_total", "result"): {"acked", "retried", "lost"},
    ("spanwise_notices_total", "result"): set(get_args(Result)),
}


def test_every_family_is_exported() -> None:
    assert {each.family for each in SELECTORS} - DECLARED.keys() == set()


def test_a_family_has_the_labels_it_is_asked_for() -> None:
    asked = {(each.family, label) for each in SELECTORS for label, _ in each.matchers}

    assert {pair for pair in asked if pair[1] not in DECLARED.get(pair[0], (pair[1],))} == set()


def test_labels_have_the_words_they_are_compared_with() -> None:
    asked: dict[tuple[str, str], set[str | None]] = {}
    for each in SELECTORS:
        for label, values in each.matchers:
            if values:
                asked.setdefault((each.family, label), set()).update(values)

    assert {key: words - WORDS[key] for key, words in asked.items() if words - WORDS[key]} == {}
    assert WORDS.keys() == asked.keys()
