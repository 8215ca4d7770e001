"""Values that are refused, each with the words that its user reads."""

import yaml

from tests.chart.support import DATA, SCALED, refusal
from tests.support.table import for_each

REFUSED: list[dict[str, str]] = yaml.safe_load((DATA / "refusals.yaml").read_text("utf-8"))


@for_each("case", REFUSED)
def test_refused_with_the_place_and_the_reason(case: dict[str, str]) -> None:
    values = SCALED + case["scaled"] if "scaled" in case else case["values"]

    assert case["refused"] in refusal(values)


@for_each(
    "values,place",
    [
        ("config: {judge: {api_key: sk-1234567890}}", "judge/api_key"),
        ("config: {judge: {api_key: '${env:KEY:-sk-1234567890}'}}", "judge/api_key"),
        ("config: {redaction: {key: sk-1234567890}}", "redaction/key"),
        (
            "config: {forward: {endpoint: 'https://a:4317', headers: {authorization: sk-1234567890}}}",
            "forward/headers/authorization",
        ),
        (
            SCALED.replace("'kafka:9092'", "'k:9092', security: {password: sk-1234567890}"),
            "log/kafka/security/password",
        ),
    ],
)
def test_a_secret_as_text_is_refused_and_is_not_in_the_refusal(values: str, place: str) -> None:
    reason = refusal(values)

    assert f"at '/config/{place}'" in reason
    assert "value must be '${env:NAME}'" in reason
    assert "sk-1234567890" not in reason


@for_each("values", yaml.safe_load((DATA / "accepted.yaml").read_text("utf-8")))
def test_accepted(values: str) -> None:
    assert not refusal(values)
