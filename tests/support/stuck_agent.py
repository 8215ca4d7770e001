"""An agent that asks the same again and again and does not come to an end."""

import json

from collector.base.clock import wall
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request

CALLS = 16


def stuck(trace_id: str = TRACE_ID) -> bytes:
    """The same call so many times, of a trace whose root has not come."""
    now = int(wall() * 1000)
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.agent.name": "stock-keeper",
        "gen_ai.conversation.id": "shelf-7",
        "gen_ai.tool.name": "search_shelf",
        "gen_ai.tool.call.arguments": json.dumps({"article": "blue lamp", "shelf": 7}),
        "gen_ai.tool.call.result": "nothing found",
    }
    return request(
        *(
            SpanSpec(id=10 + n, parent=1, attributes=attributes, start=now + n, end=now + n + 1)
            for n in range(CALLS)
        ),
        trace_id=trace_id,
    )
