"""What tests need beside the lock file: a test without it is skipped, and fails where the environment requires it."""

import os
from typing import NoReturn

import pytest


def missing(name: str, why: str) -> NoReturn:
    """Skip, or fail where SPANWISE_REQUIRE_<NAME>=1 says that it is here."""
    if os.environ.get(f"SPANWISE_REQUIRE_{name}") == "1":
        pytest.fail(f"{why} (SPANWISE_REQUIRE_{name}=1)")
    pytest.skip(why)
