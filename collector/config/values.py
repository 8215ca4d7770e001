"""The kinds of values that settings have beyond pydantic's: durations, sizes, addresses. Each has its bounds here."""

import ipaddress
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    SecretStr,
    WithJsonSchema,
)

_DURATION = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
"""In milliseconds: 5943ms is then exactly 5.943."""
_SIZE = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_BEYOND = 1 << 62
"""What every larger size is taken for: more than any setting allows."""
MAX_DURATION = 3650 * 86_400
"""Ten years, in seconds."""
MAX_SIZE = 64 << 40
"""LMDB maps its file into memory, and an address has 47 bits."""


def _quantity(
    value: Any, numbers: tuple[type, ...], pattern: str, expected: str
) -> re.Match[str] | None:
    """The number and the unit that a text holds; None: the value is a number. Raises ValueError: it is neither."""
    if isinstance(value, numbers) and not isinstance(value, bool):
        return None
    match = re.fullmatch(pattern, value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f'expected {expected}, got "{value}"')
    return match


def parse_duration(value: Any) -> Any:
    """Seconds out of `500ms 5s 30m 24h`; a number alone, quoted or not, is seconds already."""
    pattern, example = r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?", "a duration such as 500ms, 5s, 30m or 24h"
    match = _quantity(value, (int, float), pattern, example)
    return value if match is None else float(match[1]) * _DURATION[match[2] or "s"] / 1000


def parse_size(value: Any) -> Any:
    """Bytes out of `64KiB 64MiB 4GiB`; numbers are bytes already."""
    pattern = r"(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|TiB)?"
    match = _quantity(value, (int,), pattern, "a size such as 64KiB, 64MiB or 4GiB")
    if match is None:
        return value
    size = float(match[1]) * _SIZE[match[2] or "B"]
    return int(size) if size < _BEYOND else _BEYOND


_HOST = re.compile(r"[\w.-]{1,253}")


def _is_address(text: str, *, port: bool) -> bool:
    """Whether this is `host:port`, IPv6 in brackets; the port may lack unless `port`."""
    match = re.fullmatch(r"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?", text)
    if match is None or (match[2] is None and port):
        return False
    if match[2] is not None and not 1 <= int(match[2]) <= 65535:
        return False
    return _is_ipv6(match[1][1:-1]) if match[1][:1] == "[" else bool(_HOST.fullmatch(match[1]))


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def is_url(text: str) -> bool:
    """Whether this is `http(s)://host[:port][/path]`."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    address = parts.netloc.rpartition("@")[2]
    readable = re.search(r"[\s\x00-\x1f\x7f]", text) is None
    return readable and parts.scheme in ("http", "https") and _is_address(address, port=False)


def _quoted(text: str) -> str:
    return "" if "@" in text else f', got "{text[:80]}{"..." if len(text) > 80 else ""}"'


def _checked(is_right: Callable[[str], bool], expected: str) -> AfterValidator:
    def check(text: str) -> str:
        if is_right(text):
            return text
        raise ValueError(f"expected {expected}{_quoted(text)}")

    return AfterValidator(check)


def _is_endpoint(text: str) -> bool:
    return text.startswith("unix:/") or _is_address(text, port=True) or is_url(text)


def _are_servers(text: str) -> bool:
    return all(_is_address(each.strip(), port=False) for each in text.split(","))


def _is_origin(text: str) -> bool:
    """Whether this is `scheme://host[:port]`, as browsers send it, or `*`."""
    return text == "*" or re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s@]+", text) is not None


_SEGMENTS = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~-]{1,100}){1,10}")
"""Of a path and nothing else: `//host` would lead the links of a page to another host, `/..` out of its path."""


def is_base_path(text: str) -> bool:
    """Whether this is `/one/or/more`, at most ten, without a slash behind."""
    return _SEGMENTS.fullmatch(text) is not None


def check_base_path(text: str) -> str:
    """Accepts `/one/or/more`, and nothing or `/` for none; without the slash behind."""
    path = text.removesuffix("/")
    if not path or is_base_path(path):
        return path
    raise ValueError(f"expected a path such as /spanwise{_quoted(text)}")


def show_duration(seconds: float) -> str:
    if seconds < 0:
        return f"-{show_duration(-seconds)}"
    for unit in ("h", "m", "s"):
        length = _DURATION[unit] / 1000
        if seconds >= length and seconds % length == 0:
            return f"{int(seconds / length)}{unit}"
    return f"{seconds * 1000:.12g}ms"


def show_size(size: int) -> str:
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size >= _SIZE[unit] and size % _SIZE[unit] == 0:
            return f"{size // _SIZE[unit]}{unit}"
    return f"{size}B"


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(show_duration),
    Field(gt=0, le=MAX_DURATION),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^\d+(\.\d+)?(ms|s|m|h|d)?$"},
                {"type": "number"},
            ]
        }
    ),
]
Size = Annotated[
    int,
    BeforeValidator(parse_size),
    PlainSerializer(show_size),
    Field(ge=0, le=MAX_SIZE),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^\d+(\.\d+)?\s*(B|KiB|MiB|GiB|TiB)?$"},
                {"type": "integer", "minimum": 0},
            ]
        }
    ),
]
Port = Annotated[int, Field(ge=0, le=65535)]
AttributeKey = Annotated[str, Field(max_length=64, pattern="^[^=]+$")]
Token = Annotated[SecretStr, Field(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Endpoint = Annotated[str, _checked(_is_endpoint, "host:port or http(s)://host:port")]
Origin = Annotated[str, _checked(_is_origin, "an origin such as https://app.example, or *")]
Url = Annotated[str, _checked(is_url, "a URL such as https://host:8000/v1")]
BasePath = Annotated[str, AfterValidator(check_base_path)]
Servers = Annotated[str, _checked(_are_servers, "servers such as broker-1:9092,broker-2:9092")]


def missing(path: str, file: Path | None) -> Iterator[str]:
    if file is not None and not os.path.isfile(file):  # noqa: PTH113 - Path's raises where a name is too long
        yield f"{path}: no such file: {file}"
