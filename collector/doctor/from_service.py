"""What the doctor looks at when it is given nothing: the newest traces of the running service, through its API."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any, Protocol
from urllib.parse import quote

from collector.config.tree import Admin, Config
from collector.doctor.seen import Seen, see
from collector.errors import ConfigError

TIMEOUT = 10.0
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - bound everywhere = reached on loopback


class Ask(Protocol):
    """Answers a GET of the admin API with its JSON."""

    def __call__(self, path: str) -> Any:
        """Raise ConfigError when there is no answer; None when it is not found."""
        ...


class Service:
    """The admin API at the configured address."""

    def __init__(self, admin: Admin) -> None:
        self._host = _ANY.get(admin.host, admin.host)
        self._port = admin.port
        tokens = admin.bearer_tokens
        self._headers = (
            {"authorization": f"Bearer {tokens[0].get_secret_value()}"} if tokens else {}
        )

    def __call__(self, path: str) -> Any:
        """See `Ask`."""
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


def seen_by(ask: Ask, config: Config, *, limit: int) -> list[Seen]:
    """The newest `limit` traces that the service remembers.

    Raises:
        ConfigError: nobody answers, or not as a Spanwise would.
    """
    redacted = config.redaction.content == "drop"
    found: list[Seen] = []
    for trace_id in _newest(ask, limit):
        full = ask(f"/api/v1/traces/{trace_id}")
        if full is not None:
            found.append(see(full["trace"], full["spans"], redacted=redacted))
    return found


def _newest(ask: Ask, limit: int) -> Iterator[str]:
    """Trace ids, session by session, the newest first, each once."""
    known: set[str] = set()
    cursor: str | None = None
    while len(known) < limit:
        page = _object(
            ask("/api/v1/sessions?limit=50" + (f"&cursor={quote(cursor)}" if cursor else ""))
        )
        for session in _list(page.get("items")):
            for trace_id in _traces_of(ask, session):
                if trace_id not in known and len(known) < limit:
                    known.add(trace_id)
                    yield trace_id
        cursor = page.get("next")
        if cursor is None:
            return


def _traces_of(ask: Ask, session: dict[str, Any]) -> list[str]:
    path = f"/api/v1/sessions/{quote(session['session_id'], safe='')}"
    whole = _object(ask(f"{path}?service={quote(session['service'], safe='')}"))
    return [trace["trace_id"] for trace in reversed(_list(whole.get("traces")))]


def _object(value: Any) -> dict[str, Any]:
    return value or {}


def _list(value: Any) -> list[dict[str, Any]]:
    return value or []
