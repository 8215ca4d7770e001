"""PagerDuty: the Events API v2, whose `dedup_key` joins the beginning and the end of an alert.

Source: PagerDuty's documentation of the Events API v2: `summary` has at most 1,024 characters, `dedup_key` 255.
"""

from collections.abc import Sequence
from typing import Any

from collector.base.http_client import HttpAnswer
from collector.notices.notice import Notice, rfc3339
from collector.notices.targets.port import TargetKind, cut

ENDPOINT = "https://events.pagerduty.com"
_SEVERITY = {"page": "critical"}


class PagerDuty(TargetKind):
    def __init__(self, routing_key: str, endpoint: str = ENDPOINT) -> None:
        super().__init__(f"{endpoint.rstrip('/')}/v2/enqueue")
        self._routing_key = routing_key

    def body(self, notices: Sequence[Notice]) -> Any:
        (notice,) = notices
        body: dict[str, Any] = {
            "routing_key": self._routing_key,
            "event_action": "trigger" if notice.end is None else "resolve",
            "dedup_key": f"spanwise/{notice.name}/{notice.identity}",
        }
        if notice.end is None:
            body |= {"payload": _payload(notice), "client": "Spanwise"}
            if notice.page is not None:
                link = {"href": notice.page, "text": "What changed"}
                body |= {"client_url": notice.page, "links": [link]}
        return body

    def is_taken(self, answer: HttpAnswer) -> bool:
        return answer.field("status") == "success"


def _payload(notice: Notice) -> dict[str, Any]:
    return {
        "summary": cut(notice.summary, 1024),
        "source": notice.label("service") or "spanwise",
        "severity": _SEVERITY.get(notice.severity, "warning"),
        "timestamp": rfc3339(notice.start),
        "component": notice.label("agent") or notice.label("sink") or "spanwise",
        "group": notice.label("service") or "spanwise",
        "class": notice.name,
        "custom_details": {
            **dict(notice.labels),
            **notice.annotations,
            **notice.facts,
            **({"sessions": list(notice.sessions)} if notice.sessions else {}),
        },
    }
