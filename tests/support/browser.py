"""Chromium, for tests of pages. Without it they are skipped; SPANWISE_REQUIRE_CHROMIUM=1 makes that a failure."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright, expect

from scripts.pictures import ARGUMENTS, CHROMIUM

expect.set_options(timeout=30_000)
needs_chromium = pytest.mark.skipif(
    not Path(CHROMIUM).exists() and os.environ.get("SPANWISE_REQUIRE_CHROMIUM") != "1",
    reason=f"{CHROMIUM} is not installed (SPANWISE_REQUIRE_CHROMIUM=1 makes this a failure)",
)


@asynccontextmanager
async def browsing(**given: Any) -> AsyncGenerator[Page]:
    """An empty page; `given` is what Playwright's `new_page` takes."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield await browser.new_page(**given)
        await browser.close()
