"""While the index is opened again, whoever asks is refused for the moment: that is not a fault of the service."""

from pathlib import Path

import pytest

from tests.support.api_stand import Stand


@pytest.mark.parametrize("path", ["/api/v1/sessions", "/api/v1/agents", "/"])
async def test_a_closed_index_is_a_503(tmp_path: Path, path: str) -> None:
    stand = Stand(tmp_path)
    stand.close()

    answer = await stand.get(path)
    assert answer.status_code == 503
    assert "ask in a moment" in answer.text
