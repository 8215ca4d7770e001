"""Slack: an incoming webhook, which takes `{"text", "blocks"}`.

Source: Slack's documentation of incoming webhooks and of Block Kit: at most 50 blocks, 3,000 characters in the text of
a section, and `&`, `<`, `>` as entities in `mrkdwn`.
"""

import re
from collections.abc import Sequence
from typing import Any

from collector.base.http_client import HttpAnswer
from collector.notices.notice import Notice
from collector.notices.targets.port import TargetKind, cut

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARK = re.compile(r"([*~`]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
"""Slack has no way to escape its own marks; between zero-width spaces one neither begins nor ends anything."""


class Slack(TargetKind):
    most = 20

    def body(self, notices: Sequence[Notice]) -> Any:
        text = "\n".join(_plain(f"{each.title}: {each.summary}") for each in notices)
        return {"text": cut(text, 3000), "blocks": [_block(each) for each in notices]}

    def is_taken(self, answer: HttpAnswer) -> bool:
        """It says `ok`, in a word or in JSON; what is like it says `success` too."""
        said = (answer.field("ok"), answer.field("success"))
        return answer.text.strip() == "ok" or (True in said and False not in said)


def _block(notice: Notice) -> dict[str, Any]:
    sign = ":white_check_mark:" if notice.state == "resolved" else ":rotating_light:"
    lines = [f"{sign} *{notice.title}* {_plain(notice.summary)}", _plain(notice.told)]
    if notice.page is not None:
        lines.append(f"<{notice.page.translate(_ENTITIES).replace('|', '%7C')}|Look at it>")
    return {
        "type": "section",
        "text": {"type": "mrkdwn", "text": cut("\n".join(lines), 3000), "verbatim": True},
    }


def _plain(text: str) -> str:
    return _MARK.sub("\u200b\\1\u200b", text).translate(_ENTITIES)
