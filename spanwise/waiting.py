"""Waiting for a coroutine from code that is not one, also where an event loop runs already."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def wait(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result. In a notebook the loop of this thread is busy, so it runs on one of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="spanwise") as pool:
        return pool.submit(asyncio.run, coroutine).result()
