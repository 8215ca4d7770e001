"""Names and ids out of a trace: short enough for a label, without characters that separate, command or hide."""

import re
from functools import lru_cache

LONGEST = 128  # characters of a name; the rest is cut
_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def clean(text: str) -> str:
    return text if text.isprintable() else _CONTROLS.sub("\ufffd", text)


def clean_name(text: str) -> str:
    """The same, at most 128 characters."""
    return _clean_name(text) if len(text) <= LONGEST else clean(text[:LONGEST])


_clean_name = lru_cache(maxsize=1024)(clean)


_UNNAMED = frozenset(
    {
        *("LangGraph", "strands_agent", "AgentRunner.run"),
        *("ClaudeAgentSDK.ClaudeSDKClient.receive_response", "ClaudeAgentSDK.query"),
    }
)
"""What LangGraph, Strands under OpenInference, the Agents SDK under MLflow and Claude's Agent SDK under OpenInference
call whatever was given no name."""
_UUID = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE
)
_DIGITS = re.compile(r"\d{6,}")
_LOOSE = re.compile(r"[\s_\-:./]+(?=[\s_\-:./]|$)|^[\s_\-:./]+")
_SHORT = 256
"""Characters of a name that is remembered."""
_METHODS = (".kickoff", "._execute_core", ".execute_core")


def stable_name(name: str | None) -> str | None:
    """A name without what changes from run to run: UUIDs and runs of six and more digits. A default is not a name."""
    if not name or name in _UNNAMED:
        return None
    return _stable(name) if len(name) <= _SHORT else _stable.__wrapped__(name)


@lru_cache(maxsize=512)
def _stable(name: str) -> str | None:
    if _UUID.search(name) or _DIGITS.search(name):
        name = _LOOSE.sub("", _DIGITS.sub("", _UUID.sub("", name)))
    for method in _METHODS:
        name = name.removesuffix(method)
    return clean_name(name).strip("_ ") or None
