"""`evaluate --junit FILE`: which sessions fell, and why, as CI systems show it.

A suite for each service, a case for each session; a case fails when a final score of the session, or of one of its
traces, is below its threshold. Each --fail-under is a case of the suite `fail-under`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec

from collector.base.errors import ConfigError

MOST = 50  # reasons that a case tells; the others are counted
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(slots=True, kw_only=True)
class _Case:
    name: str
    failed: list[str] = field(default_factory=list[str])
    errors: list[str] = field(default_factory=list[str])
    scored: bool = False


class JUnitReport:
    """Takes the sessions as they close; `write` makes the file."""

    def __init__(self) -> None:
        self._suites: dict[str, list[_Case]] = {}

    def add(self, service: str, session_id: str, signals: Sequence[bytes]) -> None:
        case = _Case(name=session_id)
        for line in signals:
            signal: dict[str, Any] = msgspec.json.decode(line)
            case.scored |= signal["outcome"] == "scored"
            if signal["outcome"] == "failed":
                case.errors.append(f"{_what(signal)}: {signal['error']['message']}")
            elif signal["success"] is False:
                case.failed.append(
                    f"{_what(signal)}: {signal['score']:.2f}{_limit(signal)}. {signal['explanation']}"
                )
        self._suites.setdefault(service, []).append(case)

    def limits(self, missed: Mapping[str, str | None]) -> None:
        """What became of each --fail-under: why it was not met, None where it was."""
        cases = [
            _Case(name=name, scored=True, failed=[why] if why else [])
            for name, why in missed.items()
        ]
        if cases:
            self._suites["fail-under"] = cases

    def write(self, file: Path) -> None:
        """Write all of it.

        Raises:
            ConfigError: the file cannot be written.
        """
        root = ElementTree.Element("testsuites", name="spanwise evaluate")
        for name, cases in self._suites.items():
            counts = {
                "tests": len(cases),
                "failures": sum(bool(each.failed) for each in cases),
                "errors": sum(bool(each.errors) and not each.failed for each in cases),
                "skipped": sum(_is_skipped(each) for each in cases),
            }
            numbers = {key: str(count) for key, count in counts.items()}
            suite = ElementTree.SubElement(root, "testsuite", {"name": _clean(name), **numbers})
            for each in cases:
                _add(suite, _clean(name), each)
        ElementTree.indent(root)
        try:
            ElementTree.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
        except OSError as error:
            raise ConfigError(f"--junit: {file}: {error.strerror or error}") from error


def _add(suite: ElementTree.Element, service: str, case: _Case) -> None:
    node = ElementTree.SubElement(suite, "testcase", name=_clean(case.name), classname=service)
    if case.failed:
        _complain(node, "failure", [*case.failed, *case.errors])
    elif case.errors:
        _complain(node, "error", case.errors)
    elif _is_skipped(case):
        ElementTree.SubElement(node, "skipped", message="nothing was scored")


def _complain(node: ElementTree.Element, kind: str, reasons: Sequence[str]) -> None:
    complaint = ElementTree.SubElement(node, kind, message=_clean(reasons[0]))
    rest = len(reasons) - MOST
    lines = [*reasons[:MOST], *([f"and {rest} more"] if rest > 0 else [])]
    complaint.text = _clean("\n".join(lines))


def _is_skipped(case: _Case) -> bool:
    return not (case.scored or case.failed or case.errors)


def _what(signal: Mapping[str, Any]) -> str:
    if signal["scope"] == "session":
        return f"{signal['evaluator']} of the session"
    return f"{signal['evaluator']} of trace {signal['trace_id']}"


def _limit(signal: Mapping[str, Any]) -> str:
    threshold = signal["threshold"]
    return "" if threshold is None else f" is below {threshold:g}"


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
