"""Whatever coding agents' log records and spans hold, a trace is read from them, the same in every order."""

import random
from dataclasses import replace
from typing import Any

from tests.support.agent_records import claude, claude_span, codex
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.table import for_each

VALUES: tuple[Any, ...] = (
    *(None, "", "x", "<REDACTED>", "true", "false", True, False, 0, -1, 10**18, 2.5),
    *([], ["a", {"b": 1}], {}, {"a": {"b": [1]}}, '{"a":', '{"full_command": {}}', "[1]", '"q"'),
    *(b"\xff", "<task-notification>", "x" * 300 + "[TRUNCATED - Content exceeds"),
)
CLAUDE = """
agent.name agent_id agent_type body command_source cost_usd decision duration_ms error error_type event.sequence
input_tokens model prompt query_source request_body_id request_id response session.id source span.type status_code
success tool_input tool_input_size_bytes tool_name tool_parameters tool_use_id
"""
CLAUDE_EVENTS = """
user_prompt tool_decision tool_result api_request api_error api_retries_exhausted assistant_response unheard_of
subagent_completed api_request_body api_response_body
"""
CODEX = """
agent.type agent_name arguments call_id conversation.id decision duration_ms error.message kind model output prompt
http.response.status_code input_token_count receiver_thread_id response response_truncated sender_thread_id source
success tool_name
"""
CODEX_EVENTS = """
user_prompt agent_response api_request sse_event tool_decision tool_result agent_communication
"""


def any_of(chance: random.Random, number: int) -> SpanSpec:
    at = chance.randint(0, 50)
    kind = chance.choice(("claude", "codex", "span"))
    if kind == "codex":
        made, keys = codex(number, chance.choice(CODEX_EVENTS.split()), at), CODEX
    elif kind == "claude":
        made, keys = claude(number, chance.choice(CLAUDE_EVENTS.split()), at), CLAUDE
    else:
        of = chance.choice(("tool", "llm_request", "interaction"))
        made, keys = claude_span(number, of, at, at + 9), CLAUDE
    named = keys.split()
    fields = {
        key: chance.choice(VALUES) for key in chance.sample(named, chance.randint(0, len(named)))
    }
    parent = chance.choice((made.parent, 1, 2, 3))
    return replace(made, parent=parent, attributes={**made.attributes, **fields})


@for_each("seed", range(300))
def test_any_records_are_read_and_their_order_changes_nothing(seed: int) -> None:
    chance = random.Random(seed)
    records = [any_of(chance, number) for number in range(1, chance.randint(2, 10))]

    trace = trace_of(*records)

    chance.shuffle(records)
    assert trace_of(*records) == trace
