"""Requests to a tool: connections are kept, cookies are not, redirects are not followed; what an answer means.

| answer | then |
|---|---|
| none, a timeout, 408, 425, 429, 5xx | `Retryable`: the tool is away; `Retry-After` is kept |
| 401, 403, 404, 405, 407, a redirect | `Retryable`: an operator can fix it; the message names the settings |
| a 2xx that does not hold what the tool promises, such as a proxy's login page | `Retryable`: it was not delivered |
| any other 4xx | `Permanent`: this request will never be taken |

An answer is asked for as it is (`identity`), because a kilobyte may inflate to gigabytes; gzip that comes nevertheless
is inflated up to the largest that is read, and anything else counts as an answer that did not come.

No message holds a secret: neither the tool's answers nor the client's errors are passed on before theirs are replaced.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
import ssl
import time
import zlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from http.cookiejar import CookieJar
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

import msgspec
from pydantic import SecretStr

from collector.base.errors import Permanent, Retryable
from collector.base.net import is_loopback

if TYPE_CHECKING:
    import httpx

TIMEOUT = 20.0  # seconds of one step of a request
LONGEST_WAIT = 600.0  # seconds of a `Retry-After` that are kept
_AWAY = frozenset({408, 425, 429})
_MISCONFIGURED = frozenset({401, 403, 404, 405, 407})
_SHOWN = 300
"""Characters of an answer that an error tells."""
_LARGEST = 1 << 20  # bytes of an answer that are read, also after inflating
_GZIP = 16 + zlib.MAX_WBITS  # zlib's way to say that the bytes have gzip's header
logging.getLogger("httpx").setLevel(logging.WARNING)  # a line per request, with its address


def proxy_for(host: str, *, tls: bool) -> str | None:
    """The URL of the environment's proxy that leads to `host`; None: it is reached directly, as loopback always is."""
    if is_loopback(host) or proxy_bypass(host):
        return None
    found = getproxies_environment().get("https" if tls else "http")
    return found if found is None or "://" in found else f"http://{found}"


class HttpTarget(NamedTuple):
    """Where a tool is and how it is reached."""

    section: str  # `sinks.phoenix`: what its settings begin with
    endpoint: str
    headers: Mapping[str, str]
    secrets: tuple[str, ...]
    credentials: tuple[str, ...]  # the settings that say who we are, for messages
    places: tuple[str, ...]  # those that say where the tool is
    auth: tuple[str, str] | None = None
    ca_file: str | None = None
    proxy: SecretStr | None = None


class HttpAnswer(NamedTuple):
    status: int
    body: bytes  # as it was sent: errors show it without secrets
    headers: Mapping[str, str] = {}  # by name in small letters

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def fields(self) -> Mapping[str, Any] | None:
        """Of a body that is a JSON object; None: it is not."""
        try:
            return msgspec.json.decode(self.body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def field(self, name: str) -> Any:
        """Of a body that is a JSON object; None: there is no such field."""
        return (self.fields or {}).get(name)

    @property
    def media(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def after(self) -> float | None:
        """Seconds of its `Retry-After`; None: it names none."""
        return _retry_after(self.headers.get("retry-after", ""))


Promise = Callable[[HttpAnswer], bool]
"""Whether a 2xx holds what the tool answers when it has taken the request."""


def is_json_or_nothing(answer: HttpAnswer) -> bool:
    return not answer.body.strip() or answer.fields is not None


def has(name: str, kind: type = dict) -> Promise:
    return lambda answer: isinstance(answer.field(name), kind)


class Client:
    def __init__(self, target: HttpTarget, *, timeout: float = TIMEOUT) -> None:
        self._target = target
        self._timeout = timeout
        self._client: httpx.AsyncClient | None = None

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        expected: Collection[int] = (),
        promised: Promise = is_json_or_nothing,
    ) -> HttpAnswer:
        """The answer to a request, when it is a yes as `promised` or one of the statuses `expected`.

        `path` goes behind the endpoint, unless it is a whole URL; `body` is sent as JSON. Raises Retryable: not now.
        Raises Permanent: never.
        """
        content = None if body is None else msgspec.json.encode(body)
        typed = {} if content is None else {"content-type": "application/json"}
        self._open(path)
        try:
            answer = await self.exchange(method, path, content, {**typed, **(headers or {})})
        except Retryable as error:
            raise Retryable(f"{self._target.places[0]}: {error}") from None
        if answer.status in expected or (answer.status // 100 == 2 and promised(answer)):
            return answer
        raise self._refusal(method, path, answer)

    async def exchange(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> HttpAnswer:
        """Any answer, with its body cut at the largest that is read. Raises Retryable: there is none."""
        import httpx  # noqa: PLC0415 - it takes 0.15 s, and only where a tool is configured

        try:
            async with (
                asyncio.timeout(2 * self._timeout),
                self._open(path).stream(method, path, content=content, headers=headers) as response,
            ):
                return HttpAnswer(
                    response.status_code, await _body(response), dict(response.headers)
                )
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            why = self._shown(f"{type(error).__name__} {error}".strip())
            raise Retryable(f"no answer ({why})") from None

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def misconfigured(self, answer: HttpAnswer) -> Retryable:
        is_elsewhere = answer.status in {404, 405} or answer.status // 100 == 3
        name, *others = self._target.places if is_elsewhere else self._target.credentials
        also = f" (or {', '.join(others)})" if others else ""
        said = "redirects are not followed" if answer.status // 100 == 3 else self.said(answer)
        return Retryable(f"{name}{also}: HTTP {answer.status}: {said}")

    def said(self, answer: HttpAnswer) -> str:
        """The answer's text for an error: one line, cut, without secrets."""
        return self._shown(answer.text)[:_SHOWN]

    def _refusal(self, method: str, path: str, answer: HttpAnswer) -> Retryable | Permanent:
        status = answer.status
        if status // 100 == 2:
            said = self.said(answer) or "nothing"
            return Retryable(
                f"{self._target.places[0]}: HTTP {status}, but not the answer of what should be there: {said}"
            )
        if status in _MISCONFIGURED or status // 100 == 3:
            return self.misconfigured(answer)
        asked = self._shown(path.partition("?")[0])
        text = f"HTTP {status} to {method} {asked}: {self.said(answer)}"
        if status in _AWAY or status >= 500:
            return Retryable(text, after=answer.after)
        return Permanent(text)

    def _open(self, path: str) -> httpx.AsyncClient:
        import httpx  # noqa: PLC0415 - see `exchange`

        if self._client is None:
            target = self._target
            parts = urlsplit(target.endpoint or path)
            try:
                context = (
                    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # to read all CAs takes 50 ms of CPU
                    if target.endpoint.startswith("http://") and not target.ca_file
                    else ssl.create_default_context(cafile=target.ca_file)
                )
            except OSError as error:
                raise Retryable(f"{target.section}.ca_file: {error}") from None
            proxy = None if target.proxy is None else target.proxy.get_secret_value()
            self._client = httpx.AsyncClient(
                base_url=target.endpoint,
                headers={**target.headers, "accept-encoding": "identity"},
                auth=target.auth,
                verify=context,
                proxy=proxy or proxy_for(parts.hostname or "", tls=parts.scheme == "https"),
                trust_env=False,  # it would send what is meant for loopback to the proxy too
                cookies=_NoCookies(),
                timeout=self._timeout,
                follow_redirects=False,
            )
        return self._client

    def _shown(self, text: str) -> str:
        """One line, without what only the tool and its user may know."""
        secrets = [*self._target.secrets]
        if self._target.proxy is not None:
            secrets.append(self._target.proxy.get_secret_value())
        for each in secrets:
            if each:
                text = text.replace(each, "***")
        return " ".join(text.split())


class _NoCookies(CookieJar):
    """One of a proxy's login page would go along with every request after it."""

    def extract_cookies(self, response: Any, request: Any) -> None:
        """Keep none."""


async def _body(response: httpx.Response) -> bytes:
    """The body, cut at the largest that is read.

    Raises Retryable: it is packed so that it is not read: what was not looked at is neither a yes nor a no.
    """
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) >= _LARGEST:
            break
    raw = bytes(body[:_LARGEST])
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        return raw
    unpacked = None
    if coding == "gzip":
        inflater = zlib.decompressobj(_GZIP)
        with suppress(zlib.error):
            unpacked = inflater.decompress(raw, _LARGEST)
        if inflater.eof and unpacked is not None:
            return unpacked
    status, coding = response.status_code, coding[:40]
    raise Retryable(f"HTTP {status} in `{coding}`, which was not asked for and cannot be read")


def _retry_after(value: str) -> float | None:
    """Seconds; None: the answer names none."""
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), LONGEST_WAIT)
    try:
        at = email.utils.parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return min(max(0.0, at - time.time()), LONGEST_WAIT)  # noqa: TID251 - the sender's date is of the wall clock
