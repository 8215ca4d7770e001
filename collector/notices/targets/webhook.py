"""Any webhook: CloudEvents 1.0 in structured mode; with a secret, signed as Standard Webhooks describes.

Sources: CloudEvents 1.0 (JSON format, HTTP binding); Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

import msgspec

from collector.base.http_client import HttpAnswer
from collector.notices.notice import Notice, rfc3339
from collector.notices.targets.port import NoticeRequest, TargetKind

_PREFIX = "whsec_"


class Webhook(TargetKind):
    def __init__(self, url: str, secret: str | None = None) -> None:
        """`secret`: `whsec_` and base64, or any text. Raises ValueError: what is behind `whsec_` is not base64."""
        super().__init__(url)
        self._key = None if secret is None else key_of(secret)

    def request(self, notices: Sequence[Notice], now: float) -> NoticeRequest:
        (notice,) = notices
        body = msgspec.json.encode(_event(notice))
        headers = {"content-type": "application/cloudevents+json"}
        if self._key is not None:
            headers |= {
                "webhook-id": notice.id,
                "webhook-timestamp": f"{int(now)}",
                "webhook-signature": _signature(self._key, notice.id, int(now), body),
            }
        return NoticeRequest(url=self._url, body=msgspec.Raw(body), headers=headers)

    def is_taken(self, answer: HttpAnswer) -> bool:
        """Standard Webhooks asks for no more than a 2xx; a page for people is not a webhook's."""
        return answer.media != "text/html" and not answer.text.lstrip().startswith("<")


def key_of(secret: str) -> bytes:
    """The bytes of a secret. Raises ValueError: what is behind `whsec_` is not base64."""
    if not secret.startswith(_PREFIX):
        return secret.encode()
    return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)


def _event(notice: Notice) -> dict[str, Any]:
    end = None if notice.end is None else rfc3339(notice.end)
    return {
        "specversion": "1.0",
        "type": f"spanwise.alert.{notice.state}.v1",
        "source": "/spanwise",
        "id": notice.id,
        "subject": notice.identity,
        "time": rfc3339(notice.start) if end is None else end,
        "datacontenttype": "application/json",
        "data": {
            "labels": dict(notice.labels),
            "annotations": notice.annotations,
            "startsAt": rfc3339(notice.start),
            "endsAt": end,
            **notice.facts,
            "sessions": list(notice.sessions),
        },
    }


def _signature(key: bytes, id_: str, timestamp: int, body: bytes) -> str:
    signed = b"%b.%d.%b" % (id_.encode(), timestamp, body)
    return f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"
