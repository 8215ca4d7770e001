"""A damaged entry empties the index; a mistake in what is made of it does not."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.api_stand import Stand, filled

AGENT = "/agent?service=support-bot&agent=planner"


@pytest.fixture
def stand(tmp_path: Path) -> Generator[Stand]:
    made = filled(Stand(tmp_path))
    yield made
    made.close()


async def test_damaged_outcomes_are_damage(stand: Stand) -> None:
    with stand.api._index.file.writing() as (connection, _):
        connection.execute("UPDATE outcomes SET packed = x'ff'")

    assert (await stand.get(AGENT)).status_code == 503
    assert stand.api._index._is_damaged


async def test_damaged_coverage_is_damage(stand: Stand) -> None:
    with stand.api._index.file.writing() as (connection, _):
        connection.execute("UPDATE sessions SET coverage = 'half' WHERE coverage IS NOT NULL")

    assert (await stand.get("/")).status_code == 503
    assert stand.api._index._is_damaged


def test_a_mistake_of_a_page_is_no_damage(stand: Stand) -> None:
    def page() -> None:
        with stand.api._index.reading() as reader:
            assert reader.names()
            raise ValueError("of a page")

    with pytest.raises(ValueError, match="of a page"):
        page()

    assert not stand.api._index._is_damaged
