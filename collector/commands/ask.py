"""Questions to a running service, over its page's address."""

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import Any, cast

from collector.base.errors import ConfigError

TIMEOUT = 10.0  # seconds for an answer of a service that may be at its limit

LONGEST = 60.0  # seconds for the whole of it: the largest at 1 MB/s

MOST = 64 << 20
"""Bytes of an answer: more than any of ours has, and what a terminal's machine can hold."""


class _Stay(urllib.request.HTTPRedirectHandler):
    """A redirect would take the token along."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        """Follow none: the answer is an error."""


_open = urllib.request.build_opener(_Stay).open


def ask_json(url: str, path: str, asked: Mapping[str, str], token: str | None) -> dict[str, Any]:
    """The body of an answer, decoded.

    Raises:
        ConfigError: as `find`; there is no such page, or something else than Spanwise answers.
    """
    body = find(url, path, asked, token)
    if body is None:
        raise ConfigError(f"{url}: HTTP 404: nothing at {path}")
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ConfigError(f"{url}{path}: something else than Spanwise answers")
    return cast("dict[str, Any]", found)


@contextmanager
def as_ours(url: str) -> Generator[None]:
    """Reads fields of answers.

    Raises:
        ConfigError: they are not those of Spanwise.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ConfigError(f"{url}: something else than Spanwise answers") from error


def find(url: str, path: str, asked: Mapping[str, str], token: str | None) -> bytes | None:
    """The body of an answer; None where a page says that it has no such thing.

    Raises:
        ConfigError: the service does not answer, or refuses; says why.
    """
    address = f"{url.rstrip('/')}{path}?{urllib.parse.urlencode(asked)}"
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    try:
        request = urllib.request.Request(address, headers=headers)  # noqa: S310 - the user's own address
        status, kind, body = _answered(request)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ConfigError(f"{url}: no answer ({error})") from error
    if status == http.client.NOT_FOUND and "html" in kind:
        return None
    if status != http.client.OK:
        raise ConfigError(f"{url}: HTTP {status}: {_message(body)}")
    if len(body) > MOST:
        raise ConfigError(
            f"{url}{path}: more than {MOST >> 20} MiB, more than Spanwise ever answers"
        )
    return body


def _answered(request: urllib.request.Request) -> tuple[int, str, bytes]:
    """Status, type and body, read in a thread: a byte now and then holds off the timeout of a socket."""
    found: list[tuple[int, str, bytes] | Exception] = []

    def read() -> None:
        try:
            with _open(request, timeout=TIMEOUT) as answer:
                found.append((answer.status, "", answer.read(MOST + 1)))
        except urllib.error.HTTPError as error:
            with error:
                kind = error.headers.get("content-type") or ""
                found.append((error.code, kind, error.read(MOST)))
        except Exception as error:  # noqa: BLE001 - it is raised by who waits
            found.append(error)

    thread = Thread(target=read, daemon=True)
    thread.start()
    thread.join(LONGEST)
    (result,) = found or (TimeoutError(f"not whole after {LONGEST:.0f} s"),)
    if isinstance(result, Exception):
        raise result
    return result


def _message(body: bytes) -> str:
    try:
        said: Any = json.loads(body)
        return str(said["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return " ".join(body[:200].decode("utf-8", "replace").split())
