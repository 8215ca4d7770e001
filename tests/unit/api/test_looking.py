"""A damaged entry empties the index; a mistake in what is made of it does not."""

import pytest

from tests.support.api_stand import Stand


@pytest.mark.parametrize(
    ("change", "page"),
    [
        ("outcomes SET packed = x'ff'", "/agent?service=support-bot&agent=planner"),
        ("sessions SET coverage = 'half' WHERE coverage IS NOT NULL", "/"),
    ],
)
async def test_a_damaged_entry_is_damage(filled_stand: Stand, change: str, page: str) -> None:
    with filled_stand.api._index.file.writing() as (connection, _):
        connection.execute(f"UPDATE {change}")

    assert (await filled_stand.get(page)).status_code == 503
    assert filled_stand.api._index._is_damaged


@pytest.mark.parametrize("path", ["/api/v1/sessions", "/api/v1/agents", "/"])
async def test_a_closed_index_refuses_for_the_moment(stand: Stand, path: str) -> None:
    """While it is opened again: that is not a fault of the service."""
    stand.close()

    answer = await stand.get(path)
    assert answer.status_code == 503
    assert "ask in a moment" in answer.text


def test_a_mistake_of_a_page_is_no_damage(filled_stand: Stand) -> None:
    def page() -> None:
        with filled_stand.api._index.reading() as reader:
            assert reader.names()
            raise ValueError("of a page")

    with pytest.raises(ValueError, match="of a page"):
        page()

    assert not filled_stand.api._index._is_damaged
