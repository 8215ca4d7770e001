"""What the index keeps: its tables, their entries, and the cursors of its lists.

    agents      id | service, agent, agent_version | sums over their sessions
    sessions    id | session_id, service | last, agent | what lists show
    traces      id | trace_id | session, start | revision, position | what it took | packed TraceHeader
    signals     subject | count | runs | packed list of SignalEntry
    recent      run | subject
    outcomes    session, subject | packed outcomes of its evaluators, which charts are made of (`outcomes.py`)
    texts       the words of each trace's question and answer, for the search (`search.py`)
    evaluators  id | name
    feedback    id | trace or session that it is about | opinion | its JSON as it arrived (`feedback_table.py`)
    evaluations id | the same, of scores of others | time | whether its signal was sent (`evaluation_table.py`)
    externals   service, agent, evaluator of others | how many came, what is known of them

A subject is a trace (2 * id) or a session (2 * id + 1): all its signals are one packed value. A run is a number for
signals of one subject that arrived without others between them: `recent` so has the order in which signals came.

Every entry belongs to a session, so that forgetting a session forgets all of it.
"""

import base64
import binascii
import struct
from collections.abc import Iterable, Iterator

import msgspec

from collector.otlp.names import name_shown
from collector.records.trace_views import CalledTool, TraceHeader
from evaluators.model import Trace
from evaluators.uses import LONGEST_NAME, MOST_TOOLS

EXCERPT = 2048  # characters of an input or output that lists and the session view show
QUESTION = 120  # characters of a session's question
MODELS = 8  # models of a trace
_HIGHEST = (1 << 63) - 1
_RUN_BITS = 20
"""A sequence is a run and the place within it: a transaction has fewer signals than 2 ** 20."""

SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE agents (
    id INTEGER PRIMARY KEY, service TEXT, agent TEXT, agent_version TEXT,
    sessions INTEGER, traces INTEGER, last INTEGER, scored INTEGER, unscored TEXT);
CREATE UNIQUE INDEX agents_by_name ON agents (service, agent, ifnull(agent_version, ''));
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, session_id TEXT, service TEXT, agent INTEGER, last INTEGER, started INTEGER,
    traces INTEGER, newest INTEGER, session_source TEXT, reliability REAL, consistency REAL, coverage TEXT,
    unscored TEXT, closed TEXT, work REAL, seconds REAL, cost REAL, input_tokens INTEGER, output_tokens INTEGER,
    errors INTEGER, gaps TEXT, question TEXT, failed INTEGER);
CREATE UNIQUE INDEX sessions_by_id ON sessions (session_id, service);
CREATE INDEX sessions_by_last ON sessions (last);
CREATE INDEX sessions_by_worst ON sessions (-ifnull(work, 2), -ifnull(reliability, 2));
CREATE INDEX sessions_of_agent ON sessions (
    agent, last, reliability, work, seconds, cost, input_tokens, output_tokens, traces, errors, closed, failed);
CREATE TABLE traces (
    id INTEGER PRIMARY KEY, trace_id TEXT, session INTEGER, start INTEGER, revision INTEGER,
    log_partition INTEGER, log_offset INTEGER, seconds REAL, cost REAL, input_tokens INTEGER, output_tokens INTEGER,
    error INTEGER, header BLOB, decided INTEGER, kept INTEGER, reason TEXT);
CREATE UNIQUE INDEX traces_by_id ON traces (trace_id);
CREATE INDEX traces_of_session ON traces (
    session, start, seconds, cost, input_tokens, output_tokens, error);
CREATE INDEX traces_in_order ON traces (id, session);
CREATE INDEX traces_decided ON traces (decided, session, kept, reason) WHERE decided IS NOT NULL;
CREATE TABLE signals (subject INTEGER PRIMARY KEY, count INTEGER, runs TEXT, signals BLOB);
CREATE TABLE recent (run INTEGER PRIMARY KEY, subject INTEGER);
CREATE TABLE outcomes (
    session INTEGER, subject INTEGER, packed BLOB, failed INTEGER, PRIMARY KEY (session, subject)) WITHOUT ROWID;
CREATE TABLE evaluators (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE feedback (
    id TEXT PRIMARY KEY, trace_id TEXT, service TEXT, session_id TEXT, task TEXT, arrived INTEGER, state INTEGER,
    name TEXT, kind TEXT, sign INTEGER, json BLOB);
CREATE INDEX feedback_of_trace ON feedback (trace_id);
CREATE INDEX feedback_of_session ON feedback (session_id, service);
CREATE INDEX feedback_of_task ON feedback (task) WHERE task IS NOT NULL;
CREATE INDEX feedback_new ON feedback (arrived) WHERE state = 0;
CREATE INDEX feedback_waiting ON feedback (arrived) WHERE state = 2;
CREATE INDEX feedback_of_people ON feedback (arrived) WHERE kind = 'human' AND sign != 0;
CREATE TABLE evaluations (
    id TEXT PRIMARY KEY, trace_id TEXT, service TEXT, session_id TEXT, task TEXT, arrived INTEGER, state INTEGER,
    name TEXT, time INTEGER, sent INTEGER, json BLOB);
CREATE INDEX evaluations_of_trace ON evaluations (trace_id);
CREATE INDEX evaluations_of_session ON evaluations (session_id, service);
CREATE INDEX evaluations_of_task ON evaluations (task) WHERE task IS NOT NULL;
CREATE INDEX evaluations_new ON evaluations (arrived) WHERE state = 0;
CREATE INDEX evaluations_waiting ON evaluations (arrived) WHERE state = 2;
CREATE INDEX evaluations_due ON evaluations (arrived) WHERE state = 3;
CREATE TABLE externals (
    service TEXT, agent TEXT, evaluator TEXT, name TEXT, source TEXT, version TEXT, count INTEGER, failed INTEGER,
    undecided INTEGER, low REAL, high REAL, error TEXT, last INTEGER, PRIMARY KEY (service, agent, evaluator))
    WITHOUT ROWID;
CREATE VIRTUAL TABLE texts USING fts5 (words, content='', detail=none, columnsize=0, tokenize=ascii);
INSERT INTO texts (texts, rank) VALUES ('pgsz', 1000);
CREATE TRIGGER trace_gone AFTER DELETE ON traces BEGIN
    DELETE FROM outcomes WHERE session = old.session AND subject = 2 * old.id; DELETE FROM feedback
    WHERE trace_id = old.trace_id; DELETE FROM evaluations WHERE trace_id = old.trace_id; END;
CREATE TRIGGER session_gone AFTER DELETE ON sessions BEGIN
    DELETE FROM outcomes WHERE session = old.id; DELETE FROM feedback
    WHERE session_id = old.session_id AND service = old.service; DELETE FROM evaluations
    WHERE session_id = old.session_id AND service = old.service; END;
"""


def whole(value: float) -> int:
    """The number as SQLite keeps whole numbers: cut to 63 bits, never below 0."""
    return min(_HIGHEST, max(0, int(value)))


def micros(seconds: float) -> int:
    """Log times are kept in whole microseconds, so that sums and orders are exact."""
    return round(seconds * 1e6)


def sequence_of(run: int, place: int) -> int:
    """Where a signal is in the order of arrival."""
    return run << _RUN_BITS | place


def run_of(sequence: int) -> int:
    return sequence >> _RUN_BITS


def trace_subject(row: int) -> int:
    return 2 * row


def session_subject(row: int) -> int:
    return 2 * row + 1


def write_cursor(*numbers: int) -> str:
    return as_cursor(struct.pack(f">{len(numbers)}Q", *numbers))


def as_cursor(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).rstrip(b"=").decode()


def read_cursor(text: str) -> bytes:
    """The key behind a cursor. Raises ValueError: it is not one of ours."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("not a cursor") from error


def place_in(key: bytes | None, count: int) -> tuple[int, ...] | None:
    """The numbers of a cursor; None: it is of another list, which starts at the top."""
    if key is None or len(key) != 8 * count:
        return None
    return tuple(map(whole, struct.unpack(f">{count}Q", key)))


class DamagedError(ValueError):
    """An entry was overwritten on disk."""


class TraceRow(msgspec.Struct):
    """Where a trace is; `offset` None: only its signals have arrived so far."""

    id: int
    session: int
    start: int = 0
    revision: int = 0
    partition: int = 0
    offset: int | None = None


class TraceEntry(msgspec.Struct, kw_only=True):
    row: TraceRow
    header: TraceHeader


class SessionEntry(msgspec.Struct, kw_only=True):
    """A session in the index. Times are log time in microseconds; scores are those of its newest signals."""

    service: str
    session_id: str
    session_source: str
    agent: str
    agent_version: str | None = None
    started: int | None = None
    last: int = 0
    traces: int = 0
    reliability: float | None = None
    consistency: float | None = None
    coverage: dict[str, int] | None = None
    unscored: str | None = None  # why it has no reliability, in plain words
    closed: str | None = None
    work: float | None = None  # its `work_baseline`
    seconds: float | None = None
    """Of its traces together, as are cost (US dollars) and tokens; None: none of them says."""
    cost: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    errors: int = 0  # traces that ended with an error
    gaps: str | None = None  # what the recording of its newest trace lacks, names parted by spaces
    question: str | None = None  # the input of its first trace, cut to `QUESTION` characters
    failed: int = 0
    """The evaluators that it or one of its traces failed: bit n is evaluator n of this index."""
    newest: int = -1
    """Offset of its newest record on `traces`: records below it are read again and change nothing."""


class AgentEntry(msgspec.Struct, kw_only=True):
    """Sums over the sessions in the index of a version of an agent."""

    service: str
    agent: str
    agent_version: str | None = None
    sessions: int = 0
    traces: int = 0
    last: int = 0
    scored: int = 0  # sessions that have a reliability
    unscored: str | None = None  # why the session without reliability that changed last has none


class SignalEntry(msgspec.Struct, array_like=True, gc=False):
    """A signal in the index: what it is of its subject, its place in the order of arrival, its JSON as it arrived."""

    slot: str  # its service, scope, evaluator and method: a subject has one signal of each
    sequence: int
    revision: int
    partition: int
    offset: int
    evaluator: str
    session_id: str
    final: bool
    json: bytes


def excerpt(header: TraceHeader, seen: float, *, content: bool) -> TraceHeader:
    """The header with its texts cut to `EXCERPT`, or without them, and each tool once; `seen`: of its record."""
    return msgspec.structs.replace(
        header,
        seen=seen,
        user_id=header.user_id if content else None,
        attributes=header.attributes if content else {},
        models=tuple(each if content else name_shown(each) for each in header.models[:MODELS]),
        tool_calls=tuple(_each_once(header.tool_calls, content=content)),
        input=header.input[:EXCERPT] if content and header.input else None,
        output=header.output[:EXCERPT] if content and header.output else None,
        error=header.error[:EXCERPT] if content and header.error else None,
    )


def _each_once(calls: Iterable[CalledTool], *, content: bool) -> Iterator[CalledTool]:
    failed: dict[str, bool] = {}
    for each in calls:
        name = (each.name if content else name_shown(each.name))[:LONGEST_NAME]
        if name in failed or len(failed) < MOST_TOOLS:
            failed[name] = failed.get(name, False) or each.failed
    return (CalledTool(name=name, error="" if fails else None) for name, fails in failed.items())


def as_trace(header: TraceHeader) -> Trace:
    fields = msgspec.structs.asdict(header)
    del fields["tool_calls"], fields["seen"]
    if header.status not in ("error", "cancelled"):
        fields["status"] = "unset"
    return Trace(**fields, truncated=True)
