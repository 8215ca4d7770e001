"""`helm test`: sends one trace over OTLP/HTTP and reads its score. Standard library only; exit 1 with one line.

OTLP_URL, ADMIN_URL, TIMEOUT; by choice RECEIVER_TOKEN, ADMIN_TOKEN, CA_FILE, CERT_FILE and KEY_FILE. With ADMIN_TOKEN
the scores are read from `/api/v1/traces/{id}`, without it the counter of scores in `/metrics` has to grow.
Without a CA_FILE the system's authorities are trusted.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

SERVICE = "helm-test"
_SCORED = re.compile(
    rf'spanwise_evaluations_total{{[^}}]*outcome="(?:pass|fail)"[^}}]*service="{SERVICE}"[^}}]*}} (\S+)'
    rf'|spanwise_evaluations_total{{[^}}]*service="{SERVICE}"[^}}]*outcome="(?:pass|fail)"[^}}]*}} (\S+)'
)


def trace(trace_id: str, now: int) -> dict[str, object]:
    """One turn: an agent that calls a tool and answers. Times in nanoseconds."""

    def text(key: str, value: str) -> dict[str, object]:
        return {"key": key, "value": {"stringValue": value}}

    def message(role: str, content: str) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": content}]}])

    agent, model, tool = (secrets.token_hex(8) for _ in range(3))
    common = [
        text("gen_ai.agent.name", SERVICE),
        text("gen_ai.conversation.id", f"{SERVICE}-{trace_id}"),
        text("gen_ai.input.messages", message("user", "What is the capital of France?")),
        text("gen_ai.output.messages", message("assistant", "Paris is the capital of France.")),
    ]
    spans = [
        {
            "traceId": trace_id,
            "spanId": agent,
            "name": f"invoke_agent {SERVICE}",
            "kind": 1,
            "startTimeUnixNano": str(now - 2_000_000_000),
            "endTimeUnixNano": str(now),
            "attributes": [text("gen_ai.operation.name", "invoke_agent"), *common],
        },
        {
            "traceId": trace_id,
            "spanId": model,
            "parentSpanId": agent,
            "name": "chat",
            "kind": 3,
            "startTimeUnixNano": str(now - 1_500_000_000),
            "endTimeUnixNano": str(now - 500_000_000),
            "attributes": [text("gen_ai.operation.name", "chat"), *common],
        },
        {
            "traceId": trace_id,
            "spanId": tool,
            "parentSpanId": agent,
            "name": "execute_tool atlas",
            "kind": 1,
            "startTimeUnixNano": str(now - 1_900_000_000),
            "endTimeUnixNano": str(now - 1_600_000_000),
            "attributes": [
                text("gen_ai.operation.name", "execute_tool"),
                text("gen_ai.tool.name", "atlas"),
                text("gen_ai.tool.call.arguments", '{"country": "France"}'),
                text("gen_ai.tool.call.result", '{"capital": "Paris"}'),
            ],
        },
    ]
    scope = {"scope": {"name": SERVICE}, "spans": spans}
    resource = {"attributes": [text("service.name", SERVICE)]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def asked(url: str, token: str | None, body: bytes | None = None) -> bytes:
    """The answer of a GET, or of a POST of JSON.

    Raises:
        OSError: no answer, or one above 299.
    """
    request = urllib.request.Request(url, data=body)  # noqa: S310 - the chart's own Services
    if body is not None:
        request.add_header("content-type", "application/json")
    if token:
        request.add_header("authorization", f"Bearer {token}")
    context = None
    if url.startswith("https:"):
        authority = Path(os.environ.get("CA_FILE", ""))
        context = ssl.create_default_context(cafile=authority if authority.is_file() else None)
        if "CERT_FILE" in os.environ:
            context.load_cert_chain(os.environ["CERT_FILE"], os.environ["KEY_FILE"])
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:  # noqa: S310
        return answer.read()


def scored(text: str) -> float:
    """How many scores of this service the metrics count."""
    return sum(float(one or other) for one, other in _SCORED.findall(text))


def scores(admin: str, token: str | None, trace_id: str, before: float) -> str | None:
    """What the scores are, in one line; None: there are none yet."""
    if token is None:
        count = scored(asked(f"{admin}/metrics", None).decode()) - before
        return f"{count:.0f} scores were counted" if count > 0 else None
    try:
        found = json.loads(asked(f"{admin}/api/v1/traces/{trace_id}", token))
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise
    values = {each["evaluator"]: each["score"] for each in found["signals"]}
    told = {name: value for name, value in values.items() if value is not None}
    return json.dumps(told) if told else None


def main() -> int:
    """Send, then read until there is a score or the time is up."""
    otlp, admin = os.environ["OTLP_URL"], os.environ["ADMIN_URL"]
    token = os.environ.get("ADMIN_TOKEN") or None
    until = time.monotonic() + float(os.environ.get("TIMEOUT", "120"))
    trace_id = secrets.token_hex(16)
    body = json.dumps(trace(trace_id, time.time_ns())).encode()
    before: float | None = None
    sent, last = False, "no score came"
    while time.monotonic() < until:
        try:
            if before is None:
                before = scored(asked(f"{admin}/metrics", None).decode())
            if not sent:
                asked(f"{otlp}/v1/traces", os.environ.get("RECEIVER_TOKEN"), body)
                sent = True
                sys.stdout.write(f"sent trace {trace_id}\n")
            found = scores(admin, token, trace_id, before)
        except OSError as error:
            last, found = f"{type(error).__name__}: {error}", None
        if found is not None:
            sys.stdout.write(f"read its scores: {found}\n")
            return 0
        time.sleep(1)
    sys.stderr.write(f"no score within the time limit; sent: {sent}; last: {last}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
