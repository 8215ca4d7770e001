"""A kind of target: what a request to it looks like. Pure; `messenger.py` sends it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from collector.base.http_client import HttpAnswer
from collector.notices.notice import Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRequest:
    url: str
    body: Any  # sent as JSON
    headers: dict[str, str] = field(default_factory=dict[str, str])


class TargetKind:
    most: ClassVar[int] = 1  # notices that one request tells
    repeats: ClassVar[float | None] = None
    """Seconds after which it is sent again what fires; None: it remembers."""

    def __init__(self, url: str) -> None:
        self._url = url

    def request(self, notices: Sequence[Notice], now: float) -> NoticeRequest:
        """The request that tells these, at Unix second `now` of the machine's clock, which the target has too."""
        del now
        return NoticeRequest(url=self._url, body=self.body(notices))

    def body(self, notices: Sequence[Notice]) -> Any:
        raise NotImplementedError

    def is_taken(self, answer: HttpAnswer) -> bool:
        """Whether a 2xx is the target's yes, and not a page of a proxy in between."""
        raise NotImplementedError


def cut(text: str, most: int) -> str:
    """At most so many characters, with three dots where it was longer."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
