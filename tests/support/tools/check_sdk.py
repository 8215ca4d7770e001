"""Bodies of requests against the models of the tools' own SDKs: run by the Python of the environment that has them.

`check_sdk.py NAME` reads a JSON list of bodies and fails on the first that a model refuses.
"""

import json
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, get_type_hints


def _langfuse(body: dict[str, Any]) -> None:
    model = import_module("langfuse.api.scores.types").ScoreBody
    names = {"id", "name", "value", "comment", "metadata", "environment", "timestamp"}
    unknown = body.keys() - names - {"traceId", "sessionId", "dataType"}
    assert not unknown, unknown
    fields = {_snake(key): value for key, value in body.items()}
    made = model.model_validate(fields)
    assert (made.trace_id is None) != (made.session_id is None), "exactly one of trace and session"
    assert made.data_type == "NUMERIC"


def _langsmith(body: dict[str, Any]) -> None:
    model = import_module("langsmith.schemas").FeedbackCreate
    assert body.keys() <= model.model_fields.keys(), body.keys() - model.model_fields.keys()
    model(**body)


def _datadog(body: dict[str, Any]) -> None:
    event = import_module("ddtrace.llmobs._eval_metric").LLMObsEvaluationMetricEvent
    types = get_type_hints(event)
    assert body.keys() <= types.keys(), body.keys() - types.keys()
    strict = import_module("pydantic").create_model
    strict("Event", __config__={"strict": True}, **{key: (types[key], ...) for key in body})(**body)


def _slack(body: dict[str, Any]) -> None:
    blocks = import_module("slack_sdk.models.blocks")
    assert body.keys() == {"text", "blocks"}
    for each in body["blocks"]:
        parsed = blocks.Block.parse(each)
        assert isinstance(parsed, blocks.SectionBlock), each
        parsed.validate_json()
        assert parsed.to_dict() == each, "nothing that Slack's own model does not know"


def _webhook(sent: dict[str, Any]) -> None:
    """A signed event: the signature by Standard Webhooks' library, the event by that of CloudEvents."""
    body, headers = sent["body"], sent["headers"]
    import_module("standardwebhooks.webhooks").Webhook(sent["secret"]).verify(body, headers)
    event = import_module("cloudevents.core.formats.json").JSONFormat().read(None, body)
    assert event.get_id() == headers["webhook-id"]


def _snake(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)


CHECKS: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "langfuse": _langfuse,
    "langsmith": _langsmith,
    "datadog": _datadog,
    "slack": _slack,
    "webhook": _webhook,
}

if __name__ == "__main__":
    for each in json.load(sys.stdin):
        CHECKS[sys.argv[1]](each)
