"""The groups whose commits hold a topic's records in an embedded log, whatever roles run in this process.

Records that a role has not read, because it runs elsewhere or later, wait in the log. Records that only a sink that is
switched off has not read do not.
"""

from __future__ import annotations

from collections.abc import Mapping

from collector.api import feed
from collector.config.tree import Config
from collector.log.port import CLOSINGS, SIGNALS, SPANS, TRACES
from collector.signals.prometheus import exporter, trace_metrics
from collector.wiring.rooms import ASSEMBLY, JUDGING, SCORING
from collector.wiring.sinks import delivery_groups

WAITS_FOR: Mapping[str, frozenset[str]] = {TRACES: frozenset({SCORING})}
"""A trace that scoring has not read is never dropped: assembly waits, then spans fill up and senders are told to."""


def groups(config: Config) -> Mapping[str, frozenset[str]]:
    """By topic, the groups that read it."""
    return {
        SPANS: frozenset({ASSEMBLY}),
        CLOSINGS: frozenset({ASSEMBLY}),
        TRACES: frozenset({SCORING, feed.TRACES_GROUP, trace_metrics.GROUP, *_judging(config)}),
        SIGNALS: frozenset({feed.SIGNALS_GROUP, exporter.GROUP, *delivery_groups(config)}),
    }


def _judging(config: Config) -> frozenset[str]:
    is_on = config.judge.model is not None or config.embedder.kind == "litellm"
    return frozenset({JUDGING}) if is_on else frozenset()
