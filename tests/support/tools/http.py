"""What a test asks a tool, as its own client would."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

PATIENCE = 120
"""Seconds that a tool gets for an answer: hundreds of traces in one request took more than 30 on a busy machine."""


def ask(
    method: str, url: str, body: Any = None, *, headers: Mapping[str, str] | None = None
) -> Any:
    """The answer's JSON, or None when it is empty; bytes are sent as OTLP.

    Raises:
        AssertionError: it is not a yes.
    """
    is_otlp = isinstance(body, bytes)
    data = body if is_otlp or body is None else json.dumps(body).encode()
    kind = "application/x-protobuf" if is_otlp else "application/json"
    request = urllib.request.Request(
        url, data=data, method=method, headers={"content-type": kind, **(headers or {})}
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            said = answer.read()
    except urllib.error.HTTPError as error:
        with error:
            raise AssertionError(f"{method} {url}: {error.code} {error.read()[:500]!r}") from None
    return json.loads(said) if said and not is_otlp else None
