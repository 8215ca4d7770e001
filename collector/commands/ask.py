"""Questions to a running service, over its page's address."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from collector.base.errors import ConfigError

TIMEOUT = 10.0
"""Seconds for an answer of a service that may be at its limit."""


def ask(url: str, path: str, asked: Mapping[str, str], token: str | None) -> bytes:
    """The body of an answer.

    Raises:
        ConfigError: the service does not answer, or refuses; says why.
    """
    body = find(url, path, asked, token)
    if body is None:
        raise ConfigError(f"{url}: HTTP 404: nothing at {path}")
    return body


def find(url: str, path: str, asked: Mapping[str, str], token: str | None) -> bytes | None:
    """The same, None where a page says that it has no such thing.

    Raises:
        ConfigError: as `ask`.
    """
    address = f"{url.rstrip('/')}{path}?{urllib.parse.urlencode(asked)}"
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    try:
        request = urllib.request.Request(address, headers=headers)  # noqa: S310 - the user's own address
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            return answer.read()
    except urllib.error.HTTPError as error:
        body = error.read()
        if error.code == 404 and "html" in (error.headers.get("content-type") or ""):
            return None
        raise ConfigError(f"{url}: HTTP {error.code}: {_message(body)}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{url}: no answer ({error})") from error


def _message(body: bytes) -> str:
    try:
        said: Any = json.loads(body)
        return str(said["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return " ".join(body[:200].decode("utf-8", "replace").split())
