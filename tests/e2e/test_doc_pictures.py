"""`python -m scripts.doc_pictures` takes the pictures of docs/pictures of recordings, over a running service."""

import sys
from pathlib import Path

import pytest

from scripts.webp import SIZE
from tests.support.browser import needs_chromium
from tests.support.processes import ran

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), needs_chromium]


@pytest.mark.parametrize("name", ["codex", "strands"])
def test_a_picture_is_taken_of_log_records_and_of_spans(tmp_path: Path, name: str) -> None:
    done = ran(
        sys.executable, "-m", "scripts.doc_pictures", "--only", name, str(tmp_path), timeout=280
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"1 pictures in {tmp_path}\n"
    (made,) = tmp_path.iterdir()
    assert made.name == f"{name}.webp"
    assert 10_000 < made.stat().st_size <= SIZE
    assert made.read_bytes()[8:12] == b"WEBP"
