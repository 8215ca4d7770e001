"""Sessions to rank, the room that ranks them over a log of the tests, and what it published."""

from collections.abc import Sequence
from typing import Any

from prometheus_client import CollectorRegistry

from collector.base.telemetry import Telemetry
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.log.port import SIGNALS, TRACES
from collector.records.codec import encode
from collector.records.sessions import session_key
from collector.records.signal import Signal
from collector.records.traces import WorkRecord
from collector.watch.ranking.ranker import Ranker
from collector.watch.ranking.ranking_room import RankingRoom
from evaluators.uses import Work
from tests.support.faulty_log import FaultyLog
from tests.support.signals import decoded_in

RANKED = plan_from(Config()).ranked


def a_session(name: str, size: int = 100, **fields: Any) -> WorkRecord:
    """A closed session whose transcript has `size` characters; `closed=None`: an open one."""
    defaults: dict[str, Any] = {
        "service": "bot",
        "session_id": name,
        "session_source": "session.id",
        "agent": "planner",
        "model": "gpt-4o",
        "seen": 1_700_000_000.0,
        "revision": 1,
        "closed": "idle",
        "digest": f"{name}-{size}",
        "work": Work(transcript=size, answers=1, questions=1, tool_calls=1, model_calls=1, turns=1),
    }
    return WorkRecord(**{**defaults, **fields})


def after(sessions: int, **fields: Any) -> Ranker:
    """A ranker for which so many sessions have closed: their transcripts have 1, 2, ... characters."""
    ranker = Ranker(RANKED)
    for number in range(1, sessions + 1):
        ranker.take(a_session(f"earlier-{number}", number, **fields))
    return ranker


def of(signals: Sequence[Signal], evaluator: str) -> Signal:
    """The one signal of the evaluator."""
    (found,) = (each for each in signals if each.evaluator == evaluator)
    return found


def append(log: FaultyLog, record: WorkRecord, partition: int = 0) -> None:
    """Scoring has written the record."""
    key = session_key(record.service, record.session_id)
    log.append(TRACES, encode(record), key=key, partition=partition)


def make_room(log: FaultyLog, telemetry: Telemetry | None = None) -> RankingRoom:
    """The room, with the evaluators of the default configuration."""
    telemetry = telemetry or Telemetry(CollectorRegistry())
    return RankingRoom(log=log, ranked=RANKED, telemetry=telemetry)


def published(log: FaultyLog) -> list[Signal]:
    """Every signal that was ever written, repeats included."""
    return decoded_in(log.history(SIGNALS))
