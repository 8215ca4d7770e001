"""A page of Chromium as a small picture for the documentation."""

import base64
from collections.abc import Mapping
from typing import Any

from playwright.sync_api import Page

SIZE = 60_000
"""Bytes of a picture, at most."""
QUALITIES = (85, 70, 55, 40)
"""Of the encoder: the first one that makes a file small enough."""


def webp(page: Page, clip: Mapping[str, float] | None = None) -> bytes:
    """What is seen of the page, or the part `clip` of all of it, as WebP.

    Raises:
        ValueError: it is too large whatever the quality.
    """
    chromium: Any = page.context.new_cdp_session(page)  # what it is sent and answers has no types
    part = {} if clip is None else {"clip": clip, "captureBeyondViewport": True}
    for quality in QUALITIES:
        given = {"format": "webp", "quality": quality, **part}
        made = base64.b64decode(chromium.send("Page.captureScreenshot", given)["data"])
        if len(made) <= SIZE:
            return made
    raise ValueError(f"{page.url} takes more than {SIZE} bytes")
