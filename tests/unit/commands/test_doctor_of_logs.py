"""`spanwise doctor` over a recording of an agent that speaks in logs and exports no text."""

import pytest

from tests.support.command import spanwise
from tests.support.service import ROOT

pytestmark = pytest.mark.process


RECORDING = ROOT / "tests/data/captures_logs/claude_code_http_plain/retry.logs.otlp"


def test_each_switch_stands_with_its_price_and_what_no_switch_exports_says_so() -> None:
    said = spanwise("doctor", str(RECORDING)).out

    assert "      OTEL_LOG_USER_PROMPTS=1\n      (exports what people type" in said
    assert "      OTEL_LOG_TOOL_DETAILS=1\n      (exports commands" in said
    assert "OTEL_LOG_TOOL_CONTENT=1\n      (results stand in the beta spans alone" in said
    assert "  no_tool_definitions: nothing can be set\n" in said
    assert "(no setting)" not in said
