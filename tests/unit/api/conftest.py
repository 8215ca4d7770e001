"""An API over an empty log, or as many of them as a test asks for."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support.api_stand import NewStand, Stand, filled


@pytest.fixture
def new_stand(tmp_path: Path) -> Generator[NewStand]:
    """Makes one with these settings; all are closed in the end."""
    made: list[Stand] = []

    def new(*overrides: str, **given: Any) -> Stand:
        made.append(Stand(tmp_path / f"stand-{len(made)}", *overrides, **given))
        return made[-1]

    yield new
    for each in made:
        each.close()


@pytest.fixture
def stand(new_stand: NewStand) -> Stand:
    return new_stand()


@pytest.fixture
def filled_stand(new_stand: NewStand) -> Stand:
    return filled(new_stand())
