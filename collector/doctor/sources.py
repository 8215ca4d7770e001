"""The traces that the doctor examines: of recordings, or of the running service through its API."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from collector.config.tree import Admin, Config
from collector.doctor.diagnosis import SESSION_KEYS, ExaminedTrace, examine
from collector.errors import ConfigError
from collector.offline.recordings import Recordings, read_recordings, requests
from collector.otlp import display
from collector.otlp.names import name_shown
from collector.otlp.redaction import Redactor, redactor
from evaluators.dialects.show import show

TIMEOUT = 10.0
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - bound everywhere = reached on loopback


# --- recordings ------------------------------------------------------------------------------------------------------


def traces_in_recordings(config: Config, recordings: Recordings) -> list[ExaminedTrace]:
    """Every trace of the recordings. Of the logs signal only the trace ids are read whose content came as log records.

    Raises:
        ConfigError: a file cannot be read.
    """
    read = asyncio.run(read_recordings(config, recordings.files, lambda _: None))
    by_trace: dict[str, list[Mapping[str, Any]]] = {}
    shown = str if config.redaction.content == "keep" else name_shown
    for span in _spans(recordings.files, redactor(config)):
        slim = {
            **_slim(span),
            "scope": shown(span["scope"]),
            "scopeVersion": shown(span["scopeVersion"]),
        }
        by_trace.setdefault(span["traceId"], []).append(slim)
    in_logs = _traces_with_content(
        path for path, signal in recordings.left_out.items() if signal == "logs"
    )
    return [
        examine(show(t), by_trace.get(t.trace_id, ()), content_in_logs=t.trace_id in in_logs)
        for t in read.traces
    ]


def _spans(files: Iterable[Path], redact: Redactor | None) -> Iterator[Mapping[str, Any]]:
    for file in files:
        for request in requests(file):
            spans = request if redact is None else redact.piece(request)
            yield from display.decode([spans], content=True)


def _slim(span: Mapping[str, Any]) -> Mapping[str, Any]:
    """The span without its content: recordings can be large."""
    fields = ("resource", "droppedAttributesCount")
    attributes = {k: v for k, v in span["attributes"].items() if k in SESSION_KEYS}
    return {**{key: span[key] for key in fields}, "attributes": attributes}


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


# --- the running service ---------------------------------------------------------------------------------------------


Get: TypeAlias = Callable[[str], Any]
"""Answers a GET of the admin API, by path, with its decoded JSON; None for 404. Raises ConfigError."""


class AdminApi:
    """The admin API at the configured address."""

    def __init__(self, admin: Admin) -> None:
        self._host = _ANY.get(admin.host, admin.host)
        self._port = admin.port
        tokens = admin.bearer_tokens
        self._headers = (
            {"authorization": f"Bearer {tokens[0].get_secret_value()}"} if tokens else {}
        )

    def __call__(self, path: str) -> Any:
        """The decoded body; None for 404.

        Raises:
            ConfigError: there is no answer, or it is an error.
        """
        where = f"http://{self._host}:{self._port}"
        link = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT)
        try:
            link.request("GET", path, headers=self._headers)
            answer = link.getresponse()
            body = answer.read()
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
        return json.loads(body)


def traces_of_service(get: Get, config: Config, *, limit: int) -> list[ExaminedTrace]:
    """The newest `limit` traces that the service remembers.

    Raises:
        ConfigError: there is no answer, or not one of Spanwise.
    """
    redacted = config.redaction.content == "drop"
    found: list[ExaminedTrace] = []
    for trace_id in _newest(get, limit):
        full = get(f"/api/v1/traces/{trace_id}")
        if full is not None:
            found.append(examine(full["trace"], full["spans"], redacted=redacted))
    return found


def _newest(get: Get, limit: int) -> Iterator[str]:
    """Trace ids, session by session, the newest first, each once."""
    known: set[str] = set()
    cursor: str | None = None
    while len(known) < limit:
        page = _object(
            get("/api/v1/sessions?limit=50" + (f"&cursor={quote(cursor)}" if cursor else ""))
        )
        for session in _list(page.get("items")):
            for trace_id in _traces_of(get, session):
                if trace_id not in known and len(known) < limit:
                    known.add(trace_id)
                    yield trace_id
        cursor = page.get("next")
        if cursor is None:
            return


def _traces_of(get: Get, session: dict[str, Any]) -> list[str]:
    path = f"/api/v1/sessions/{quote(session['session_id'], safe='')}"
    whole = _object(get(f"{path}?service={quote(session['service'], safe='')}"))
    return [trace["trace_id"] for trace in reversed(_list(whole.get("traces")))]


def _object(value: Any) -> dict[str, Any]:
    return value or {}


def _list(value: Any) -> list[dict[str, Any]]:
    return value or []
