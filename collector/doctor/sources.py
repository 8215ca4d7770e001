"""The traces that the doctor examines: of recordings, or of the running service through its API."""

import http.client
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from collector.base.errors import ConfigError
from collector.config.tree import Admin, Config
from collector.doctor.diagnosis import LOOKED_AT, UNREAD, ExaminedTrace, examine, is_unread
from collector.doctor.unscored import FailingJudge, SessionSeen, failing_judge, session_seen
from collector.otlp import display
from collector.otlp.names import name_shown
from collector.service.recorded_traces import read_recordings
from collector.service.recordings import Recordings, requests
from evaluators.dialects.show import show

TIMEOUT = 10.0  # seconds for an answer of a service on this machine, which may be at its limit
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - bound everywhere = reached on loopback


def traces_in_recordings(config: Config, recordings: Recordings) -> list[ExaminedTrace]:
    """Every trace of the recordings. Of the logs signal only the trace ids are read whose content came as log records.

    Raises ConfigError: a file cannot be read.
    """
    shown = str if config.redaction.content == "keep" else name_shown
    in_logs = _traces_with_content(
        path for path, signal in recordings.left_out.items() if signal == "logs"
    )
    with read_recordings(config, recordings.files, lambda _: None) as recorded:
        return [
            examine(
                show(trace),
                [_slim(span, shown) for span in _spans(recorded.pieces(trace.trace_id))],
                content_in_logs=trace.trace_id in in_logs,
            )
            for trace in recorded.closed.traces()
        ]


def _spans(pieces: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    for piece in pieces:
        yield from display.decode([piece], content=True)


def _slim(span: Mapping[str, Any], shown: Callable[[str], str | None]) -> Mapping[str, Any]:
    """The span without its content: traces can be large."""
    return {
        "resource": span["resource"],
        "droppedAttributesCount": span["droppedAttributesCount"],
        "attributes": {k: v for k, v in span["attributes"].items() if k in LOOKED_AT},
        UNREAD: is_unread(span),
        "scope": shown(span["scope"]),
        "scopeVersion": shown(span["scopeVersion"]),
    }


def _traces_with_content(files: Iterable[Path]) -> frozenset[str]:
    """Traces whose messages came as log records (`gen_ai.*` events)."""
    return frozenset(
        record.trace_id.hex()
        for file in files
        for request in requests(file)
        for record in _log_records(request)
        if record.event_name.startswith("gen_ai.")
        or any(
            a.key == "event.name" and a.value.string_value.startswith("gen_ai.")
            for a in record.attributes
        )
    )


def _log_records(request: bytes) -> Iterator[Any]:
    try:
        message = ExportLogsServiceRequest.FromString(request)
    except DecodeError:
        return
    for resource_logs in message.resource_logs:
        for scope_logs in resource_logs.scope_logs:
            yield from scope_logs.log_records


MOST = 64 << 20  # bytes of an answer: more than any of ours has
Get = Callable[[str], Any]
"""Answers a GET of the admin API, by path, with its decoded JSON; None for 404. Raises ConfigError."""


class AdminApi:
    def __init__(self, admin: Admin) -> None:
        self._host = _ANY.get(admin.host, admin.host)
        self._port = admin.port
        tokens = admin.bearer_tokens
        self._headers = (
            {"authorization": f"Bearer {tokens[0].get_secret_value()}"} if tokens else {}
        )

    def __call__(self, path: str) -> Any:
        """The decoded body; None for 404. Raises ConfigError: there is no answer, or it is an error."""
        where = f"http://{self._host}:{self._port}"
        link = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT)
        try:
            link.request("GET", path, headers=self._headers)
            answer = link.getresponse()
            body = answer.read(MOST)
        except (OSError, http.client.HTTPException) as error:
            raise ConfigError(
                f"{where}: no running Spanwise answers ({error}); name recordings, or set admin.host and admin.port"
            ) from error
        finally:
            link.close()
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise ConfigError(
                f"{where}{path}: HTTP {answer.status}: {body[:200].decode(errors='replace')}"
            )
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{where}{path}: another service than Spanwise answers") from error


class ServiceSeen(NamedTuple):
    traces: list[ExaminedTrace]
    sessions: list[SessionSeen]
    judge: FailingJudge | None
    by_chance: Sequence[Mapping[str, Any]] = ()
    """Judges that agree with people no better than chance, as `/api/v1/agreement` has them."""
    switched_off: Sequence[str] = ()
    """Evaluators of third parties that ended or held up their processes, as `/api/v1/evaluators` has them."""
    external: Sequence[Mapping[str, Any]] = ()
    """Evaluators whose scores come from elsewhere, as the same has them."""


def seen_by_service(get: Get, config: Config, *, limit: int) -> ServiceSeen:
    """The newest `limit` traces, and their sessions, the newest first.

    Raises ConfigError: there is no answer, or not one of Spanwise.
    """
    redacted = config.redaction.content == "drop"
    known: dict[str, ExaminedTrace | None] = {}
    sessions: dict[tuple[str, str], SessionSeen] = {}
    signals: list[dict[str, Any]] = []
    for session in _sessions(get):
        if len(known) >= limit:
            break
        seen = session_seen(session)
        sessions[seen.service, seen.session_id] = seen
        for trace in reversed(_list(session.get("traces"))):
            trace_id = trace["trace_id"]
            if trace_id in known or len(known) >= limit:
                continue
            signals += _list(trace.get("signals"))
            full = get(f"/api/v1/traces/{trace_id}")
            known[trace_id] = full and examine(full["trace"], full["spans"], redacted=redacted)
    traces = [each for each in known.values() if each is not None]
    agreed = _list(_object(get("/api/v1/agreement?limit=1")).get("agreement"))
    by_chance = [each for each in agreed if each["no_better_than_chance"]]
    listed = _object(get("/api/v1/evaluators"))
    evaluators, external = _list(listed.get("items")), _list(listed.get("external"))
    off = sorted({each["name"] for each in evaluators if each.get("switched_off")})
    judge = failing_judge(signals)
    return ServiceSeen(traces, list(sessions.values()), judge, by_chance, off, external)


def _sessions(get: Get) -> Iterator[dict[str, Any]]:
    cursor: str | None = None
    while True:
        page = _object(
            get("/api/v1/sessions?limit=50" + (f"&cursor={quote(cursor)}" if cursor else ""))
        )
        for each in _list(page.get("items")):
            path = f"/api/v1/sessions/{quote(each['session_id'], safe='')}"
            yield each | _object(get(f"{path}?service={quote(each['service'], safe='')}"))
        cursor = page.get("next")
        if cursor is None:
            return


def _object(value: Any) -> dict[str, Any]:
    return value or {}


def _list(value: Any) -> list[dict[str, Any]]:
    return value or []
