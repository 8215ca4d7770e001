"""Requests to a tool: connections are kept, redirects are not followed, and what an answer means for the signals.

| answer | then |
|---|---|
| none, a timeout, 408, 425, 429, 5xx | `Retryable`: the tool is away; `Retry-After` is kept |
| 401, 403, 404, 405, 407, a redirect | `Retryable`: an operator can fix it; the message names the settings |
| any other 4xx | `Permanent`: this request will never be taken |

No message holds a secret: neither the tool's answers nor the client's errors are passed on before theirs are replaced.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
import ssl
import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from pydantic import SecretStr

from collector.base.errors import Permanent, Retryable

if TYPE_CHECKING:
    import httpx

TIMEOUT = 20.0
"""Seconds of one step of a request."""
LONGEST_WAIT = 600.0
"""Seconds of a `Retry-After` that are kept."""
_AWAY = frozenset({408, 425, 429})
_MISCONFIGURED = frozenset({401, 403, 404, 405, 407})
_SHOWN = 300
"""Characters of an answer that an error tells."""
_LARGEST = 1 << 20
"""Bytes of an answer that are read."""
logging.getLogger("httpx").setLevel(logging.WARNING)  # a line per request, with its address


class HttpTarget(NamedTuple):
    """Where a tool is and how it is reached."""

    section: str
    """`sinks.phoenix`: what its settings begin with."""
    endpoint: str
    headers: Mapping[str, str]
    secrets: tuple[str, ...]
    credentials: tuple[str, ...]
    """The settings that say who we are, for messages."""
    places: tuple[str, ...]
    """Those that say where the tool is."""
    auth: tuple[str, str] | None = None
    ca_file: str | None = None
    proxy: SecretStr | None = None


class HttpAnswer(NamedTuple):
    """What a tool said."""

    status: int
    text: str
    """As it was sent: errors show it without secrets."""

    def field(self, name: str) -> Any:
        """Of a body that is a JSON object; None: there is no such field."""
        try:
            return msgspec.json.decode(self.text, type=dict[str, Any]).get(name)
        except (msgspec.DecodeError, msgspec.ValidationError):
            return None


class Client:
    """One tool, from one event loop."""

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
    ) -> HttpAnswer:
        """The answer to a request, when it is a yes or one of the statuses `expected`.

        `path` goes behind the endpoint, unless it is a whole URL; `body` is sent as JSON.

        Raises:
            Retryable: not now.
            Permanent: never.
        """
        import httpx  # noqa: PLC0415 - it takes 0.15 s, and only where a tool is configured

        content = None if body is None else msgspec.json.encode(body)
        typed = {} if content is None else {"content-type": "application/json"}
        try:
            async with (
                asyncio.timeout(2 * self._timeout),
                self._open().stream(
                    method, path, content=content, headers={**typed, **(headers or {})}
                ) as response,
            ):
                answer = HttpAnswer(response.status_code, await _text(response))
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            why = self._shown(f"{type(error).__name__} {error}".strip())
            raise Retryable(f"{self._target.places[0]}: no answer ({why})") from None
        if answer.status // 100 == 2 or answer.status in expected:
            return answer
        raise self._refusal(method, path, answer, response.headers)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def misconfigured(self, answer: HttpAnswer) -> Retryable:
        """The error of an answer that only a changed setting can better."""
        is_elsewhere = answer.status in {404, 405} or answer.status // 100 == 3
        name, *others = self._target.places if is_elsewhere else self._target.credentials
        also = f" (or {', '.join(others)})" if others else ""
        said = "redirects are not followed" if answer.status // 100 == 3 else self.said(answer)
        return Retryable(f"{name}{also}: HTTP {answer.status}: {said}")

    def said(self, answer: HttpAnswer) -> str:
        """The answer's text for an error: one line, cut, without secrets."""
        return self._shown(answer.text)[:_SHOWN]

    def _refusal(
        self, method: str, path: str, answer: HttpAnswer, headers: httpx.Headers
    ) -> Retryable | Permanent:
        status = answer.status
        if status in _MISCONFIGURED or status // 100 == 3:
            return self.misconfigured(answer)
        asked = self._shown(path.partition("?")[0])
        text = f"HTTP {status} to {method} {asked}: {self.said(answer)}"
        if status in _AWAY or status >= 500:
            return Retryable(text, after=_retry_after(headers.get("retry-after", "")))
        return Permanent(text)

    def _open(self) -> httpx.AsyncClient:
        import httpx  # noqa: PLC0415 - see `ask`

        if self._client is None:
            target = self._target
            try:
                context = ssl.create_default_context(cafile=target.ca_file)
            except OSError as error:
                raise Retryable(f"{target.section}.ca_file: {error}") from None
            self._client = httpx.AsyncClient(
                base_url=target.endpoint,
                headers=dict(target.headers),
                auth=target.auth,
                verify=context,
                proxy=None if target.proxy is None else target.proxy.get_secret_value(),
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


async def _text(response: httpx.Response) -> str:
    """The body, cut at the largest that is read."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) >= _LARGEST:
            break
    return body[:_LARGEST].decode("utf-8", "replace")


def _retry_after(value: str) -> float | None:
    """Seconds; None: the answer names none."""
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), LONGEST_WAIT)
    try:
        at = email.utils.parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return min(max(0.0, at - time.time()), LONGEST_WAIT)  # noqa: TID251 - the sender's date is of the wall clock
