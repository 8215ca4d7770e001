"""From configuration to the log, and the groups that read it.

A new adapter is a file under `collector/log/`, its kind in `config.LogConfig` and its row in `LOGS`.
"""

from collections.abc import Awaitable, Callable, Mapping

from collector.api import feed
from collector.base.clock import Clock
from collector.base.steady_clock import SteadyClock
from collector.base.telemetry import Telemetry
from collector.config.plan import plan_from
from collector.config.tree import Config, Role
from collector.export import exporter, trace_metrics
from collector.forward import broadcasts, forwarder, keeper
from collector.log.disk.disk_log import DiskLog
from collector.log.families import LogFamilies
from collector.log.lag import LagMeter, WatchedGroup
from collector.log.memory import MemoryLog
from collector.log.port import (
    CLOSINGS,
    FEEDBACK,
    LOG_REQUESTS,
    SIGNALS,
    SPANS,
    TRACES,
    Lag,
    Log,
)
from collector.receiver import log_requests
from collector.service.rooms import ASSEMBLY, COMPARING, JUDGING, PLUGIN_JUDGING, SCORING
from collector.service.sinks import delivery_groups, feedback_groups
from collector.watch.faults import fault_reader
from collector.watch.ranking import ranking_room
from evaluators.plan import is_third_party

MEMORY_SIZE = 512 << 20  # bytes that the memory log holds

JOINED_RECORD = 1 << 20
"""Bytes up to which the pieces of one request are one record of `spans`: as much as a reader takes without a pause."""

Open = Callable[[Config, Clock, Telemetry], Awaitable[Log]]
WAITS_FOR: Mapping[str, frozenset[str]] = {TRACES: frozenset({SCORING})}
"""A trace that scoring has not read is never dropped: assembly waits, then spans fill up and senders wait too."""

_ROLES: Mapping[str, Role] = {
    log_requests.GROUP: "receive",
    forwarder.GROUP: "receive",
    keeper.GROUP: "receive",
    broadcasts.GROUP: "receive",
    ASSEMBLY: "assemble",
    SCORING: "score",
    COMPARING: "score",
    JUDGING: "judge",
    PLUGIN_JUDGING: "judge",
}
"""By group, the role that reads for it; every other group is of role `publish`."""
_READ_AHEAD = frozenset({ASSEMBLY, exporter.GROUP, keeper.GROUP})
"""Groups that commit later than they take records in: at the oldest open or undecided trace; where windows end."""


async def _disk(config: Config, clock: Clock, telemetry: Telemetry) -> Log:
    log = await DiskLog.open(
        config.data_dir / "log",
        max_size=config.log.disk.max_size,
        clock=clock,
        telemetry=telemetry,
        groups=groups(config),
        waits_for=WAITS_FOR,
    )
    if isinstance(clock, SteadyClock):
        clock.go_on_from(log.end_time())
    return log


async def _kafka(config: Config, clock: Clock, telemetry: Telemetry) -> Log:
    from collector.log.kafka.kafka_log import KafkaLog  # noqa: PLC0415 - aiokafka takes 5 MB

    return await KafkaLog.open(config.log.kafka, clock=clock, telemetry=telemetry)


async def _memory(config: Config, clock: Clock, telemetry: Telemetry) -> Log:
    return MemoryLog(
        clock=clock,
        max_size=MEMORY_SIZE,
        telemetry=telemetry,
        groups=groups(config),
        waits_for=WAITS_FOR,
        keeps_spans=config.forward is not None,
    )


LOGS: dict[str, Open] = {"disk": _disk, "kafka": _kafka, "memory": _memory}
"""By `log.kind`, how the log is opened."""


async def open_log(config: Config, clock: Clock, telemetry: Telemetry) -> Log:
    """The log that the configuration names.

    Raises ConfigError: it cannot be opened. Raises KeyError: the kind has no row in `LOGS`.
    """
    return await LOGS[config.log.kind](config, clock, telemetry)


def joined_record(config: Config, log: Log) -> int:
    """Bytes up to which a record of `spans` holds several traces; 0: one trace each, as partitions need it.

    Not on Kafka, whatever its partitions: others read that topic too, and it may be given more of them.
    """
    return JOINED_RECORD if config.log.kind != "kafka" and log.partitions(SPANS) == 1 else 0


def groups(config: Config) -> Mapping[str, frozenset[str]]:
    requests: dict[str, frozenset[str]] = {}
    if config.log.kind == "kafka":
        requests = {LOG_REQUESTS: frozenset({log_requests.GROUP})}
    return requests | {
        SPANS: frozenset({ASSEMBLY}),
        CLOSINGS: frozenset({ASSEMBLY}),
        TRACES: frozenset(
            {
                SCORING,
                feed.TRACES_GROUP,
                trace_metrics.GROUP,
                fault_reader.GROUP,
                ranking_room.GROUP,
                *_verdicts(config),
            }
        ),
        SIGNALS: frozenset({feed.SIGNALS_GROUP, exporter.GROUP, *delivery_groups(config)}),
        FEEDBACK: frozenset(
            {feed.FEEDBACK_GROUP, *feedback_groups(config), *_broadcasting(config)}
        ),
    }


def lag_meter(
    log: Log,
    config: Config,
    *,
    unwritten: Callable[[], Lag],
    telemetry: Telemetry,
    clock: Clock,
) -> LagMeter:
    """What shows how far the groups are behind.

    `unwritten`: what assembly has read, closed and not written.
    """
    held = {ASSEMBLY: unwritten}
    watched = [
        WatchedGroup(
            group=group,
            topic=topic,
            unread=group in _READ_AHEAD,
            held=held.get(group, Lag),
        )
        for topic, names in (*groups(config).items(), *_holding_nothing(config))
        if topic != CLOSINGS  # assembly reads it back by itself
        for group in sorted(names)
        if _answers_for(group, config)
    ]
    return LagMeter(log, watched, families=LogFamilies(telemetry), clock=clock)


def _answers_for(group: str, config: Config) -> bool:
    """Whether this process shows the group's lag: its own; a log of one process, and role `publish`, every group's."""
    if config.log.kind != "kafka" or "publish" in config.roles:
        return True
    return _ROLES.get(group) in config.roles


def _broadcasting(config: Config) -> frozenset[str]:
    """The group that tells the owners of traces of feedback."""
    keep = config.forward and config.forward.keep
    return frozenset({broadcasts.GROUP}) if keep and keep.feedback else frozenset()


def _holding_nothing(config: Config) -> list[tuple[str, frozenset[str]]]:
    """The groups that no record is kept for: what they have not read may go when its room is needed."""
    if config.forward is None:
        return []
    spans = (SPANS, frozenset({forwarder.GROUP}))
    return [spans] if config.forward.keep is None else [spans, (TRACES, frozenset({keeper.GROUP}))]


def _verdicts(config: Config) -> frozenset[str]:
    plan = plan_from(config)
    theirs = [each for each in plan.judged if is_third_party(each)]
    ours = [each for each in plan.judged if each not in theirs]
    found = {JUDGING: ours, PLUGIN_JUDGING: theirs, COMPARING: plan.plugins}
    return frozenset(group for group, due in found.items() if due)
