"""Links that would leave the site become names of files; a page that no list names is listed all the same."""

from pathlib import PurePosixPath

from scripts.site.stage import linked
from tests.support.table import for_each


@for_each(
    ("page", "written", "read"),
    [
        ("docs/a.md", "see [cost](cost.md#disk)", "see [cost](cost.md#disk)"),
        (
            "docs/a.md",
            "on [Kubernetes](../helm/README.md#install)",
            "on [Kubernetes](kubernetes.md#install)",
        ),
        ("docs/decisions/1.md", "the [limits](../../SECURITY.md)", "the [limits](../security.md)"),
        ("docs/a.md", "see [this](#there)", "see [this](#there)"),
        (
            "docs/a.md",
            "see [that](https://example.com/x.md)",
            "see [that](https://example.com/x.md)",
        ),
        ("docs/a.md", "the [schema](../collector/x.json)", "the schema (`collector/x.json`)"),
        ("docs/a.md", "the [helm/Chart.yaml](../helm/Chart.yaml)", "the `helm/Chart.yaml`"),
        ("docs/a.md", "the [reasons](decisions)", "the [reasons](decisions/index.md)"),
        ("docs/decisions/1.md", "see [cost](../cost.md)", "see [cost](../cost.md)"),
        (
            "docs/decisions/1.md",
            "see [code](../../collector/a.py#L1)",
            "see code (`collector/a.py`)",
        ),
        ("helm/README.md", "[operate](../docs/operate.md#kafka)", "[operate](operate.md#kafka)"),
        ("helm/README.md", "[rules](spanwise/values.yaml)", "rules (`helm/spanwise/values.yaml`)"),
        ("SECURITY.md", "[why](docs/decisions/1.md)", "[why](decisions/1.md)"),
    ],
)
def test_a_link_stays_within_the_site(page: str, written: str, read: str) -> None:
    assert linked(written, PurePosixPath(page)) == read
