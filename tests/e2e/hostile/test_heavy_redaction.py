"""Small bodies that unfold to millions of what looks like secrets: redacted while everybody else is served."""

from pathlib import Path

import pytest

from tests.support.hostile import bystanders, field_of, post, zipped
from tests.support.otlp import body, span
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

UNFOLDED = 62 << 20
WAIT = 10.0
CPU = 60.0
"""Of four requests and of their bystanders, 14 to 28 s by machine; one without a bound takes minutes."""
PATTERNS = "{email: email, card: card, phone: phone, token: token, order: 'ORD-[0-9]{6}'}"


def texts(unit: str) -> bytes:
    """Spans just below the limit of one, full of this text."""
    text = unit * ((15 << 20) // len(unit))
    return body(*[span(1, number, text=text) for number in range(1, 5)])


def fields() -> bytes:
    """Spans of empty attributes by the million, each with a secret."""
    one = span(1, 1, text="jane@example.org").SerializeToString() + b"\x4a\x02\x0a\x00" * 15_000
    return field_of(1, field_of(2, field_of(2, one) * (UNFOLDED // len(one))))


def test_texts_full_of_secrets_delay_no_other_sender(tmp_path: Path) -> None:
    heavy = [
        zipped(each)
        for each in (texts("4 "), texts("jane@example.org "), texts(r"\u0041\\"), fields())
    ]
    with (
        Service(tmp_path / "data", f"redaction.patterns={PATTERNS}") as service,
        bystanders(service) as toll,
    ):
        answers = [post(service.http, each, {"content-encoding": "gzip"})[0] for each in heavy]

    assert answers[-1] in (200, 413)
    assert set(answers) <= {200, 413}
    assert toll.above(wait=WAIT, cpu=CPU, memory=1 << 30) == []
    assert toll.served > 10
