"""Untrusted text inside a prompt: fenced by a random marker it cannot know, without characters that hide or command."""

from __future__ import annotations

import re

PLACEHOLDER = "\x00"
"""Stands for the marker where a prompt is digested; no text holds it."""

# Zero width, direction overrides, variation selectors, tag characters: what a person would not see.
_UNSEEN = re.compile(
    "[\u00ad\u061c\u115f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff]"
)
_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufff9-\ufffb\ud800-\udfff]")
# What chat templates turn into roles when a server does not escape it.
_ROLES = re.compile(
    "<[|\uff5c]|[|\uff5c]>"
    r"|</?s>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|</?(?:system|user|assistant)>",
    re.IGNORECASE,
)
_TAG = re.compile("[<\ufe64\uff1c]" r"(?=\s*/?\s*recording\b)", re.IGNORECASE)
_DEFUSED = str.maketrans({"<": "\u2039", ">": "\u203a", "[": "(", "]": ")"})


def visible(text: str) -> str:
    """The text without anything that a person would not see; every kind of line break is a newline."""
    return _CONTROLS.sub("\ufffd", _BREAKS.sub("\n", _UNSEEN.sub("", text)))


def harmless(text: str, marker: str) -> str:
    """The text as data: all of it visible, without marker, fence tag and role tokens; never longer than before."""
    text = visible(text)
    text = _ROLES.sub(lambda found: found.group().translate(_DEFUSED), text)
    text = _TAG.sub("\u2039", text)
    return re.sub(re.escape(marker), "#", text, flags=re.IGNORECASE)


def fenced(text: str, marker: str) -> str:
    """The text between two lines that hold the marker, which stands nowhere else."""
    return f"<recording {marker}>\n{harmless(text, marker)}\n</recording {marker}>"
