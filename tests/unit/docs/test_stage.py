"""Links that would leave the site become names of files; a page that no list names is listed all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.site.stage import linked


@pytest.mark.parametrize(
    ("page", "written", "read"),
    [
        ("a.md", "see [cost](cost.md#disk)", "see [cost](cost.md#disk)"),
        ("a.md", "see [this](#there)", "see [this](#there)"),
        ("a.md", "see [that](https://example.com/x.md)", "see [that](https://example.com/x.md)"),
        ("a.md", "the [schema](../collector/x.json)", "the schema (`collector/x.json`)"),
        ("a.md", "the [helm/README.md](../helm/README.md)", "the `helm/README.md`"),
        ("a.md", "the [reasons](decisions)", "the [reasons](decisions/index.md)"),
        ("decisions/1.md", "see [cost](../cost.md)", "see [cost](../cost.md)"),
        ("decisions/1.md", "see [code](../../collector/a.py#L1)", "see code (`collector/a.py`)"),
    ],
)
def test_a_link_stays_within_the_site(page: str, written: str, read: str) -> None:
    assert linked(written, Path(page)) == read
