"""Text for terminals, logs and JSON lines, without characters that command a terminal or turn a line around.

Such characters are the control characters of C0 and C1, DEL, U+2028, U+2029, the marks of direction (Unicode's
Bidi_Control) and lone surrogates. Traces, file names and settings may hold them; they are shown as escapes.
"""

import logging
import re
import sys
from typing import Any, TextIO

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cell(value: Any) -> str:
    """Its text. What was not measured is empty, never 0; a text that would be run as a formula begins with `'`."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_BEYOND_C0 = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_BEYOND_C0}]")
_IN_ONE_LINE = re.compile(f"[\x00-\x1f{_BEYOND_C0}]")
_IN_JSON = re.compile(f"[{_BEYOND_C0}]")


def printable(text: str) -> str:
    r"""The text with `\x1b` or `\u202e` for each such character; line feeds and tabs stay."""
    return text if text.isprintable() else _IN_LINES.sub(_escape, text)


def one_line(text: str) -> str:
    r"""The same for a text that is one line or one cell: line feeds and tabs become `\x0a` and `\x09`."""
    return text if text.isprintable() else _IN_ONE_LINE.sub(_escape, text)


def escape_json(text: str) -> str:
    r"""JSON that says the same with `\u001b` or `\u202e` for each such character; C0 in strings is escaped already."""
    return text if text.isascii() and "\x7f" not in text else _IN_JSON.sub(_json_escape, text)


def escape_json_bytes(value: bytes) -> bytes:
    """The same for JSON as bytes of UTF-8; unchanged bytes where there is nothing to escape."""
    if value.isascii() and b"\x7f" not in value:
        return value
    return escape_json(value.decode()).encode()


def log_to_stderr(level: int) -> None:
    """Make the root logger write lines without such characters to stderr, if it has no handler yet."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PrintableFormatter(FORMAT))
    logging.basicConfig(level=level, handlers=[handler])


def write_line(stream: TextIO, text: str) -> None:
    stream.write(one_line(text) + "\n")


class PrintableFormatter(logging.Formatter):
    """One line per message, whatever its fields hold; a traceback keeps its lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return one_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return printable(super().formatException(ei))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def _json_escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
