"""Questions to a running service, over its page's address."""

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, cast

from collector.base.errors import ConfigError

TIMEOUT = 10.0  # seconds for an answer of a service that may be at its limit

MOST = 64 << 20
"""Bytes of an answer: more than any of ours has, and what a terminal's machine can hold."""


class _Stay(urllib.request.HTTPRedirectHandler):
    """A redirect would take the token along."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        """Follow none: the answer is an error."""


_open = urllib.request.build_opener(_Stay).open


def ask(url: str, path: str, asked: Mapping[str, str], token: str | None) -> bytes:
    """The body of an answer.

    Raises:
        ConfigError: the service does not answer, or refuses; says why.
    """
    body = find(url, path, asked, token)
    if body is None:
        raise ConfigError(f"{url}: HTTP 404: nothing at {path}")
    return body


def ask_json(url: str, path: str, asked: Mapping[str, str], token: str | None) -> dict[str, Any]:
    """The same, decoded.

    Raises:
        ConfigError: as `ask`; or something else than Spanwise answers.
    """
    try:
        found: Any = json.loads(ask(url, path, asked, token))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ConfigError(f"{url}{path}: something else than Spanwise answers")
    return cast("dict[str, Any]", found)


def find(url: str, path: str, asked: Mapping[str, str], token: str | None) -> bytes | None:
    """The same, None where a page says that it has no such thing.

    Raises:
        ConfigError: as `ask`.
    """
    address = f"{url.rstrip('/')}{path}?{urllib.parse.urlencode(asked)}"
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    try:
        request = urllib.request.Request(address, headers=headers)  # noqa: S310 - the user's own address
        with _open(request, timeout=TIMEOUT) as answer:
            body = answer.read(MOST + 1)
    except urllib.error.HTTPError as error:
        body = error.read(MOST)
        if error.code == 404 and "html" in (error.headers.get("content-type") or ""):
            return None
        raise ConfigError(f"{url}: HTTP {error.code}: {_message(body)}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ConfigError(f"{url}: no answer ({error})") from error
    if len(body) > MOST:
        raise ConfigError(
            f"{url}{path}: more than {MOST >> 20} MiB, more than Spanwise ever answers"
        )
    return body


def _message(body: bytes) -> str:
    try:
        said: Any = json.loads(body)
        return str(said["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return " ".join(body[:200].decode("utf-8", "replace").split())
