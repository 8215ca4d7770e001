"""The admin API over a log and an index of a test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.api_stand import Stand


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    made = Stand(tmp_path / "index")
    yield made
    made.close()
