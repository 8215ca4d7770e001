"""What no single field can say: settings that do not fit together, files that are not there."""

from collections.abc import Iterable, Iterator
from typing import cast
from urllib.parse import urlsplit

from collector.base.net import is_loopback, is_own
from collector.config.tree import Config, Section
from collector.config.values import missing
from evaluators.providers.litellm import listed_price, missing_library

KAFKA_KEEPS = 7 * 86_400.0
"""Seconds: Spanwise makes its topics with Kafka's own default, `retention.ms` of a week."""


def crosscheck(config: Config) -> list[str]:
    return [
        *_roles(config),
        *_kafka(config),
        *_listeners(config),
        *_forward(config),
        *_conflicts(config),
        *_files(config),
        *_embedder(config),
        *_judge(config),
    ]


def _roles(config: Config) -> Iterator[str]:
    if not config.roles:
        yield "roles: expected at least one of receive, assemble, score, judge, publish"
    if len(set(config.roles)) < len(config.roles):
        yield "roles: name each role at most once"
    for path in config.receiver.http.paths:
        if not path.startswith("/"):
            yield f'receiver.http.paths: expected paths that begin with /, got "{path}"'


def _kafka(config: Config) -> Iterator[str]:
    kafka = config.log.kafka
    if config.log.kind == "kafka":
        if not kafka.bootstrap_servers:
            yield "log.kafka.bootstrap_servers: required with log.kind kafka, such as broker-1:9092"
        yield from kafka.security.conflicts("log.kafka.security")


def _listeners(config: Config) -> Iterator[str]:
    listeners = [("admin.port", config.admin.host, config.admin.port)]
    if "receive" in config.roles:
        receiver = config.receiver
        listeners = [
            ("receiver.grpc.port", receiver.grpc.host, receiver.grpc.port),
            ("receiver.http.port", receiver.http.host, receiver.http.port),
            *listeners,
        ]
    for at, (path, host, port) in enumerate(listeners):
        for other, other_host, other_port in listeners[:at]:
            if port and port == other_port and _overlap(host, other_host):
                yield f"{path}: {port} is taken by {other}; give each listener a port of its own"


def _overlap(one: str, other: str) -> bool:
    everywhere = {"0.0.0.0", "::", ""}  # noqa: S104 - compared, not bound
    return one == other or bool({one, other} & everywhere)


def _conflicts(tree: object, path: str = "") -> Iterator[str]:
    """What each section says of itself; `log` says it where Kafka is the log."""
    children: Iterable[tuple[str, object]] = ()
    if isinstance(tree, Section):
        yield from tree.conflicts(path)
        children = tree
    elif isinstance(tree, dict):
        children = cast(dict[str, object], tree).items()
    for name, each in children:
        if path or name != "log":
            yield from _conflicts(each, f"{path}.{name}" if path else name)


def _forward(config: Config) -> Iterator[str]:
    """A request forwarded to ourselves would go round without end."""
    if config.forward is None:
        return
    yield from _kept_too_late(config)
    if "receive" not in config.roles:
        return
    endpoint = config.forward.endpoint
    parts = urlsplit(endpoint if "://" in endpoint else f"//{endpoint}")
    host, receiver = parts.hostname or "", config.receiver
    if any(
        parts.port == each.port
        and (is_loopback(host) or (_overlap(each.host, host) and is_own(host)))
        for each in (receiver.grpc, receiver.http)
    ):
        yield f"forward.endpoint: {endpoint} is this receiver itself; name another backend"


def _kept_too_late(config: Config) -> Iterator[str]:
    """A trace is sent whole from the log, if need be `late` after its decision."""
    keep = config.forward and config.forward.keep
    if not keep or config.log.kind != "kafka":  # elsewhere bytes decide how long spans are kept
        return
    trace = config.windows.trace
    if trace.max_age + keep.wait + trace.late > KAFKA_KEEPS:
        yield (
            "forward.keep.wait: with windows.trace.max_age and windows.trace.late above the 7 days that topic `spans`"
            " is kept, traces would expire before they are sent; shorten one of them"
        )


def _files(config: Config) -> Iterator[str]:
    yield from missing("expectations", config.expectations)
    if config.receiver.tls is not None:
        for name in ("cert_file", "key_file", "client_ca_file"):
            yield from missing(f"receiver.tls.{name}", getattr(config.receiver.tls, name))


def _embedder(config: Config) -> Iterator[str]:
    if config.embedder.kind == "litellm" and config.embedder.model is None:
        yield "embedder.model: required with embedder.kind litellm, such as text-embedding-3-small"


def _judge(config: Config) -> Iterator[str]:
    """A provider on AWS needs a library of its own, and a limit in USD the price of everything that is asked."""
    for path, model in models_asked(config).items() if "judge" in config.roles else ():
        if (library := missing_library(model)) is not None:
            yield f'{path}: `{model}` needs {library}: pip install "spanwise[bedrock]", docs/install.md'
    if config.judge.budget.usd_per_day is None or config.judge.price is not None:
        return
    for path, model in models_asked(config).items():
        if listed_price(model) is None:
            yield (
                f"{path}: the price of `{model}` is not known, so judge.budget.usd_per_day cannot"
                " be kept; set judge.price: {input:, output:} (USD per 1M tokens)"
            )


def models_asked(config: Config) -> dict[str, str]:
    models: dict[str, str] = {}
    if config.judge.model is not None:
        models["judge.model"] = config.judge.model
        for name, chosen in config.evaluators.items():
            if isinstance(model := chosen.options.get("model"), str):
                models[f"evaluators.{name}.model"] = model
    embedder = config.embedder
    if embedder.kind == "litellm" and embedder.model is not None:
        models["embedder.model"] = embedder.model
    return models
