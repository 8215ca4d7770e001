"""Slack: an incoming webhook, which takes `{"text", "blocks"}`.

Source: Slack's documentation of incoming webhooks and of Block Kit: at most 50 blocks, 3,000 characters in the text of
a section, and `&`, `<`, `>` as entities in `mrkdwn`.
"""

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from collector.base.http_client import HttpAnswer
from collector.notices.notice import Notice, clock_time
from collector.notices.targets.port import NoticeRequest, cut

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARK = re.compile(r"([*~`]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
"""Slack has no way to escape its own marks; between zero-width spaces one neither begins nor ends anything."""


class Slack:
    most: ClassVar[int] = 20
    repeats: ClassVar[float | None] = None

    def __init__(self, url: str) -> None:
        self._url = url

    def request(self, notices: Sequence[Notice], now: float) -> NoticeRequest:
        del now
        text = "\n".join(_plain(f"{title(each)}: {each.summary}") for each in notices)
        return NoticeRequest(
            url=self._url,
            body={"text": cut(text, 3000), "blocks": [_block(each) for each in notices]},
        )

    def is_taken(self, answer: HttpAnswer) -> bool:
        """It says `ok`, in a word or in JSON; what is like it says `success` too."""
        said = (answer.field("ok"), answer.field("success"))
        return answer.text.strip() == "ok" or (True in said and False not in said)


def title(notice: Notice) -> str:
    return f"{notice.severity} over" if notice.state == "resolved" else notice.severity


def _block(notice: Notice) -> dict[str, Any]:
    sign = ":white_check_mark:" if notice.state == "resolved" else ":rotating_light:"
    lines = [f"{sign} *{title(notice)}* {_plain(notice.summary)}"]
    if notice.end is None:
        lines.append(_plain(notice.description))
    else:
        lines.append(f"From {clock_time(notice.start)} to {clock_time(notice.end)}.")
    if notice.page is not None:
        lines.append(f"<{notice.page.translate(_ENTITIES).replace('|', '%7C')}|Look at it>")
    return {
        "type": "section",
        "text": {"type": "mrkdwn", "text": cut("\n".join(lines), 3000), "verbatim": True},
    }


def _plain(text: str) -> str:
    return _MARK.sub("\u200b\\1\u200b", text).translate(_ENTITIES)
