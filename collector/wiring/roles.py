"""Which groups' commits hold a topic's records in an embedded log, whatever roles run in this process.

What a role that is left out has not read waits in the log; what a sink that is switched off has not read does not.
"""

from __future__ import annotations

from collections.abc import Mapping

from collector.config.tree import Config
from collector.log.port import CLOSINGS, SIGNALS, SPANS, TRACES

ASSEMBLY, SCORING = "assembly", "scoring"
API_TRACES, API_SIGNALS = "api.traces", "api.signals"
JUDGING = "judging"
PROMETHEUS, PROMETHEUS_TRACES = "sink.prometheus", "sink.prometheus.traces"


WAITS_FOR: Mapping[str, frozenset[str]] = {TRACES: frozenset({SCORING})}
"""A trace that scoring has not read is never dropped: assembly waits, then spans fill up and senders are told to."""


def groups(config: Config) -> Mapping[str, frozenset[str]]:
    """By topic, the groups that read it."""
    sinks = config.sinks
    chosen = {"sink.jsonl": sinks.jsonl, "sink.kafka": sinks.kafka, "sink.otlp": sinks.otlp}
    on = {name for name, sink in chosen.items() if sink is not None}
    return {
        SPANS: frozenset({ASSEMBLY}),
        CLOSINGS: frozenset({ASSEMBLY}),
        TRACES: frozenset({SCORING, API_TRACES, PROMETHEUS_TRACES, *_judging(config)}),
        SIGNALS: frozenset({API_SIGNALS, PROMETHEUS, *on}),
    }


def _judging(config: Config) -> frozenset[str]:
    asks = config.judge.model is not None or config.embedder.kind == "litellm"
    return frozenset({JUDGING}) if asks else frozenset()
