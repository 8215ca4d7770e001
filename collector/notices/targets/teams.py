"""Microsoft Teams: a workflow's webhook, which takes an Adaptive Card.

Source: Microsoft's documentation of incoming webhooks: a message with one attachment of type
`application/vnd.microsoft.card.adaptive`, below 28 KB.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from collector.base.http_client import HttpAnswer, is_json_or_nothing
from collector.notices.notice import Notice
from collector.notices.targets.port import TargetKind, cut

LARGEST = 27_000  # bytes of a message


class Teams(TargetKind):
    most = 10

    def body(self, notices: Sequence[Notice]) -> Any:
        """One card for all, with shorter texts where they do not fit."""
        most = 2000
        while len(msgspec.json.encode(body := _message(notices, most))) > LARGEST:
            most //= 2
        return body

    def is_taken(self, answer: HttpAnswer) -> bool:
        """A workflow answers 202, a connector `1`: its failures are texts under 200."""
        return answer.text.strip() == "1" or (answer.status == 202 and is_json_or_nothing(answer))


def _message(notices: Sequence[Notice], most: int) -> dict[str, Any]:
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [block for each in notices for block in _blocks(each, most)],
        "actions": [
            {"type": "Action.OpenUrl", "title": cut(f"Look at {each.name}", 60), "url": each.page}
            for each in notices[:5]
            if each.page is not None
        ],
    }
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [content]}


def _blocks(notice: Notice, most: int) -> list[dict[str, Any]]:
    color = "Good" if notice.state == "resolved" else "Attention"
    return [
        _text(cut(f"{notice.title}: {notice.summary}", most), weight="Bolder", color=color),
        _text(cut(notice.told, most)),
    ]


def _text(text: str, **style: str) -> dict[str, Any]:
    """Plain text: a `TextBlock` would be Markdown, whose escapes Microsoft's renderer shows as backslashes."""
    run = {"type": "TextRun", "text": text, **style}
    return {"type": "RichTextBlock", "inlines": [run]}
