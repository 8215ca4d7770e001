"""From configuration to sinks."""

from collections.abc import Callable, Iterator, Mapping

from collector.config.tree import Config
from collector.sinks.datadog import DatadogSink
from collector.sinks.feedback_delivery import feedback_group
from collector.sinks.jsonl import JsonlSink
from collector.sinks.langfuse import LangfuseSink
from collector.sinks.langsmith import LangsmithSink
from collector.sinks.mlflow import MlflowSink
from collector.sinks.otlp import OtlpSink
from collector.sinks.phoenix import PhoenixSink
from collector.sinks.port import Sink, SinkKind, delivery_group


def _kafka() -> SinkKind:
    from collector.sinks.kafka import KafkaSink  # noqa: PLC0415 - aiokafka takes 5 MB

    return KafkaSink


SINKS: Mapping[str, Callable[[], SinkKind]] = {
    "jsonl": lambda: JsonlSink,
    "kafka": _kafka,
    "otlp": lambda: OtlpSink,
    "phoenix": lambda: PhoenixSink,
    "mlflow": lambda: MlflowSink,
    "langfuse": lambda: LangfuseSink,
    "langsmith": lambda: LangsmithSink,
    "datadog": lambda: DatadogSink,
}


def sinks(config: Config) -> list[Sink]:
    made = [each.configured(config) for each in switched_on(config)]
    return [sink for sink in made if sink is not None]


def delivery_groups(config: Config) -> frozenset[str]:
    """The groups whose commits hold signals in the log until their sink has delivered them."""
    return frozenset(delivery_group(each.name) for each in switched_on(config))


def feedback_groups(config: Config) -> frozenset[str]:
    return frozenset(
        feedback_group(each.name)
        for each in switched_on(config)
        if hasattr(each, "deliver_feedback")
    )


def switched_on(config: Config) -> Iterator[SinkKind]:
    """The kinds whose section under `sinks` is set. The sections decide, so that no sink can be left out unnoticed.

    Raises LookupError: a section has no sink in SINKS.
    """
    for name, section in config.sinks:
        if section is None:
            continue
        if name not in SINKS:
            raise LookupError(
                f"section `sinks.{name}` has no sink in collector.service.sinks.SINKS"
            )
        yield SINKS[name]()
