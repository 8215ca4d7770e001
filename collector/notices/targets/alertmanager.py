"""Alertmanager: `POST /api/v2/alerts`. Its identity of an alert is the label set, as ours is.

An alert of Prometheus with these labels is the same one there, where Prometheus adds no external labels.
Source: Alertmanager's OpenAPI document of version 2; tried with 0.25.
"""

from collections.abc import Sequence
from typing import Any

from collector.base.http_client import HttpAnswer
from collector.notices.notice import Notice, rfc3339
from collector.notices.targets.port import NoticeRequest, TargetKind

LASTS = 240.0
"""Seconds for which an alert lasts there unless it is sent again; without an end the server's own time holds."""


class Alertmanager(TargetKind):
    most = 256
    repeats = 60.0

    def __init__(self, endpoint: str) -> None:
        super().__init__(f"{endpoint.rstrip('/')}/api/v2/alerts")
        self.status_url = f"{endpoint.rstrip('/')}/api/v2/status"  # only reads

    def request(self, notices: Sequence[Notice], now: float) -> NoticeRequest:
        return NoticeRequest(url=self._url, body=[_alert(each, now) for each in notices])

    def is_taken(self, answer: HttpAnswer) -> bool:
        return not answer.body.strip()


def _alert(notice: Notice, now: float) -> dict[str, Any]:
    """Times are of the machine's clock, as the server's: log time may be ahead of it."""
    end = now + LASTS if notice.end is None else min(notice.end, now)
    return {
        "labels": dict(notice.labels),
        "annotations": notice.annotations,
        "startsAt": rfc3339(min(notice.start, end)),
        "endsAt": rfc3339(end),
        "generatorURL": notice.page or "",
    }
