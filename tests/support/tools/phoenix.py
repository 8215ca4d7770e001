"""Phoenix as its users see it: traces go in, annotations are read back."""

import base64
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlencode

from tests.support.server_program import ask
from tests.support.tools.scores import spans_of

PROJECT = "/v1/projects/default"


def send_traces(url: str, traces: Iterable[tuple[str, str]]) -> None:
    """A span of each (trace id, session id), which Phoenix stores a little later."""
    ask("POST", f"{url}/v1/traces", spans_of(traces))


def traces(url: str) -> set[str]:
    """The ids of those that are stored."""
    return {each["trace_id"] for each in _all(f"{url}{PROJECT}/traces", {"limit": "1000"})}


def spans_in(url: str) -> list[dict[str, Any]]:
    """Those that are stored."""
    return _all(f"{url}{PROJECT}/spans", {"limit": "1000"})


def annotations_of(
    url: str, kind: str, subjects: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Ours on traces or sessions (`kind`), in the order in which they were made."""
    asked = {"identifier": "spanwise", "limit": "1000"}
    found = _all(f"{url}{PROJECT}/{kind}_annotations", asked)
    return sorted(
        (each for each in found if subjects is None or each[f"{kind}_id"] in subjects), key=_number
    )


def delete_annotations(url: str) -> None:
    """All that are ours."""
    asked = urlencode({"identifier": "spanwise", "delete_all": "true"})
    for kind in ("trace", "session"):
        ask("DELETE", f"{url}{PROJECT}/{kind}_annotations?{asked}")


def _number(annotation: dict[str, Any]) -> int:
    return int(base64.b64decode(annotation["id"]).decode().rpartition(":")[2])


def _all(url: str, asked: dict[str, str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        more = {"cursor": cursor} if cursor else {}
        page = ask("GET", f"{url}?{urlencode(asked | more)}")
        found += page["data"]
        cursor = page.get("next_cursor") or ""
        if not cursor:
            return found
