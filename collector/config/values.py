"""The kinds of values that settings have beyond pydantic's: durations, sizes, addresses. Each has its bounds here."""

import ipaddress
import os
import re
from collections.abc import Iterator
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


def parse_duration(value: Any) -> Any:
    """Seconds out of `500ms 5s 30m 24h`; a number alone, quoted or not, is seconds already."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f'expected a duration such as 500ms, 5s, 30m or 24h, got "{value}"')
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?", value.strip())
    if match is None:
        raise ValueError(f'expected a duration such as 500ms, 5s, 30m or 24h, got "{value}"')
    return float(match[1]) * _DURATION[match[2] or "s"] / 1000


def parse_size(value: Any) -> Any:
    """Bytes out of `64KiB 64MiB 4GiB`; numbers are bytes already."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ValueError(f'expected a size such as 64KiB, 64MiB or 4GiB, got "{value}"')
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|TiB)?", value.strip())
    if match is None:
        raise ValueError(f'expected a size such as 64KiB, 64MiB or 4GiB, got "{value}"')
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


def check_endpoint(text: str) -> str:
    if text.startswith("unix:/") or _is_address(text, port=True) or is_url(text):
        return text
    raise ValueError(f"expected host:port or http(s)://host:port{_quoted(text)}")


def check_url(text: str) -> str:
    if is_url(text):
        return text
    raise ValueError(f"expected a URL such as https://host:8000/v1{_quoted(text)}")


def check_servers(text: str) -> str:
    if all(_is_address(each.strip(), port=False) for each in text.split(",")):
        return text
    raise ValueError(f"expected servers such as broker-1:9092,broker-2:9092{_quoted(text)}")


def check_origin(text: str) -> str:
    """Accepts `scheme://host[:port]`, as browsers send it, and `*`."""
    if text == "*" or re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s@]+", text):
        return text
    raise ValueError(f"expected an origin such as https://app.example, or *{_quoted(text)}")


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
Endpoint = Annotated[str, AfterValidator(check_endpoint)]
Origin = Annotated[str, AfterValidator(check_origin)]
Url = Annotated[str, AfterValidator(check_url)]
BasePath = Annotated[str, AfterValidator(check_base_path)]
Servers = Annotated[str, AfterValidator(check_servers)]


def missing(path: str, file: Path | None) -> Iterator[str]:
    if file is not None and not os.path.isfile(file):  # noqa: PTH113 - Path's raises where a name is too long
        yield f"{path}: no such file: {file}"
