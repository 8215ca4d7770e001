"""From configuration to sinks."""

from __future__ import annotations

from collector.config.tree import Config
from collector.signals.sinks.jsonl import JsonlSink
from collector.signals.sinks.kafka import KafkaSink
from collector.signals.sinks.otlp import OtlpSink
from collector.signals.sinks.port import Sink


def sinks(config: Config) -> list[Sink]:
    """Those that are switched on."""
    chosen: list[Sink] = []
    if (jsonl := config.sinks.jsonl) is not None:
        path = jsonl.path or config.data_dir / "signals.jsonl"
        chosen.append(JsonlSink(path, jsonl.max_size, jsonl.keep))
    if (kafka := config.sinks.kafka) is not None:
        chosen.append(KafkaSink(kafka))
    if (otlp := config.sinks.otlp) is not None:
        chosen.append(OtlpSink(otlp))
    return chosen
