"""Ways in which a provider answers or fails: what it does with the n-th request, and how many verdicts must arrive."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.loopback import Body, Reply
from tests.support.openai_server import filled

Way = Callable[[int, Body], Reply]
"""From the number of the request (1 is the first) and its body."""


def good(_: int, asked: Body) -> Reply:
    """An answer that fits the schema, also where it was not sent."""
    return answer(json.dumps(_value(asked)))


def answer(content: str | None, finish: str = "stop", **message: Any) -> Reply:
    """A completion."""
    said = {"role": "assistant", "content": content, **message}
    return Reply(
        200,
        {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "finish_reason": finish, "message": said}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        },
    )


def refusal(
    status: int, text: str, *, code: str | None = None, param: str | None = None, **headers: str
) -> Reply:
    """OpenAI's form of an error."""
    error = {"message": text, "type": "invalid_request_error", "param": param, "code": code}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, {"error": error}, named)


def every_second(bad: Reply) -> Way:
    """The odd requests fail."""
    return lambda number, asked: bad if number % 2 else good(number, asked)


def first(count: int, bad: Reply) -> Way:
    """The first requests fail."""
    return lambda number, asked: bad if number <= count else good(number, asked)


def where(is_refused: Callable[[Body], bool], bad: Reply, then: Way = good) -> Way:
    """Requests of one form fail."""
    return lambda number, asked: bad if is_refused(asked) else then(number, asked)


def always(reply: Reply) -> Way:
    """Every request has the same end."""
    return lambda _number, _asked: reply


def has_schema(asked: Body) -> bool:
    """Whether a schema came with it, in any provider's form."""
    return "response_format" in asked


def _second(bad: Reply) -> Way:
    return lambda number, asked: bad if number == 2 else good(number, asked)


def _value(asked: Body) -> Any:
    schema = asked.get("response_format", {}).get("json_schema", {}).get("schema")
    return {"score": 0.8} if schema is None else filled(schema)


def _thinking(_: int, asked: Body) -> Reply:
    return answer(f'<think>\nHm {{"a": 1}}\n</think>\n```json\n{json.dumps(_value(asked))}\n```')


def _fenced(_: int, asked: Body) -> Reply:
    return answer(f"Sure! Here it is:\n```json\n{json.dumps(_value(asked))}\n```\nAnything else?")


def _as_thought(_: int, asked: Body) -> Reply:
    return answer(None, reasoning_content=json.dumps(_value(asked)))


def _without_usage(number: int, asked: Body) -> Reply:
    reply = good(number, asked)
    assert isinstance(reply.body, dict)
    return Reply(200, {key: value for key, value in reply.body.items() if key != "usage"})


def _small_context(number: int, asked: Body) -> Reply:
    wanted = 1500 + (asked.get("max_tokens") or 0)
    if wanted <= 4096:
        return good(number, asked)
    text = f"This model's maximum context length is 4096 tokens. However, you requested {wanted} tokens."
    return refusal(400, text, code="context_length_exceeded")


_NO_SCHEMA = "'response_format' of type json_schema is not supported with this model"
_NO_TEMPERATURE = refusal(
    400,
    "Unsupported value: 'temperature' does not support 0 with this model.",
    code="unsupported_value",
    param="temperature",
)
_NO_MAX_TOKENS = refusal(
    400,
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    code="unsupported_parameter",
    param="max_tokens",
)
_HTML = Reply(502, b"<html><h1>502 Bad Gateway</h1></html>", {"content-type": "text/html"})
_DETAIL = [{"loc": ["body", "response_format"], "msg": "unsupported"}]


def _hot(asked: Body) -> bool:
    return asked.get("temperature") not in (None, 1, 1.0)


ALL: Mapping[str, Way] = {
    "good": good,
    "503 at first": first(2, refusal(503, "overloaded")),
    "every second 500": every_second(refusal(500, "internal")),
    "every second 502, as HTML": every_second(_HTML),
    "every second 503 with Retry-After": every_second(refusal(503, "busy", retry_after="1")),
    "every second 504": every_second(refusal(504, "gateway timeout")),
    "every second 529": every_second(
        Reply(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}})
    ),
    "every second 408": every_second(refusal(408, "request timeout")),
    "every second 409": every_second(refusal(409, "conflict")),
    "every second 429": every_second(refusal(429, "slow down", retry_after="1")),
    "every second reset": every_second(Reply(0, b"")),
    "every second error in a 200": every_second(refusal(200, "upstream", code="502")),
    "every second error in a 200, no code": every_second(
        Reply(200, {"error": {"message": "upstream overloaded", "code": None}})
    ),
    "every second error in a 200, a text": every_second(Reply(200, {"error": "overloaded"})),
    "every second without a completion": every_second(Reply(200, {"detail": "starting"})),
    "every second empty body": every_second(Reply(200, b"")),
    "every second without choices": every_second(Reply(200, {"id": "x", "choices": []})),
    "429 with milliseconds": first(1, refusal(429, "slow", retry_after_ms="1500")),
    "429 with a date": first(1, refusal(429, "slow", retry_after="Wed, 21 Oct 2099 07:28:00 GMT")),
    "no schema: 400": where(has_schema, refusal(400, _NO_SCHEMA)),
    "no schema: 400 without a reason": where(has_schema, Reply(400, {"error": "bad request"})),
    "no schema: 400 of Azure": where(
        has_schema, refusal(400, "Invalid parameter.", param="response_format")
    ),
    "no schema: 422": where(has_schema, Reply(422, {"detail": _DETAIL})),
    "no schema: 500": where(has_schema, refusal(500, "internal: guided decoding unavailable")),
    "no schema: 500 without a reason": where(has_schema, refusal(500, "internal")),
    "no schema: no choices": where(has_schema, Reply(200, {"id": "x", "choices": []})),
    "no schema, and the second is too many": where(
        has_schema, refusal(400, _NO_SCHEMA), _second(refusal(429, "slow", retry_after="1"))
    ),
    "no temperature": where(_hot, _NO_TEMPERATURE),
    "no temperature, in words": where(_hot, Reply(400, {"message": "temperature is deprecated"})),
    "no temperature: 422": where(
        _hot, Reply(422, {"detail": [{"loc": ["body", "temperature"], "msg": "extra"}]})
    ),
    "no max_tokens": where(lambda asked: "max_tokens" in asked, _NO_MAX_TOKENS),
    "max_tokens of at most 1024": where(
        lambda asked: (asked.get("max_tokens") or 0) > 1024,
        refusal(400, "max_tokens: 4096 > 1024, the maximum of output tokens"),
    ),
    "no limit at all": where(
        lambda asked: bool({"max_tokens", "max_completion_tokens"} & asked.keys()),
        refusal(400, "Unrecognized request argument supplied: max_tokens"),
    ),
    "neither temperature nor max_tokens": where(
        lambda asked: "max_tokens" in asked, _NO_MAX_TOKENS, where(_hot, _NO_TEMPERATURE)
    ),
    "neither schema nor temperature": where(
        has_schema, refusal(400, _NO_SCHEMA), where(_hot, _NO_TEMPERATURE)
    ),
    "a context of 4096 tokens": _small_context,
    "fences and prose": _fenced,
    "thoughts": _thinking,
    "the answer among the thoughts": _as_thought,
    "no usage": _without_usage,
}
"""All verdicts must arrive."""

_FILTERED = "The response was filtered due to the prompt triggering content management policy."
NONE: Mapping[str, tuple[Way, str]] = {
    "filtered": (always(refusal(400, _FILTERED, code="content_filter")), "content_filter"),
    "filtered in a 200": (always(answer("", "content_filter")), "content_filter"),
    "refused": (always(answer(None, refusal="I cannot.")), "refusal"),
    "cut": (always(answer("", "length")), "cut"),
    "cut, without text": (always(answer(None, "length")), "cut"),
    "cut amid the answer": (always(answer('{"score": 0.', "length")), "cut"),
    "a login page": (
        always(Reply(200, b"<html>login</html>", {"content-type": "text/html"})),
        "unreadable",
    ),
    "empty": (always(Reply(200, b"")), "unreadable"),
    "no choices": (always(Reply(200, {"id": "x", "choices": []})), "no_answer"),
    "no quota": (always(refusal(429, "quota", code="insufficient_quota")), "no_quota"),
    "402": (always(refusal(402, "pay")), "no_quota"),
    "401": (always(refusal(401, "wrong key", code="invalid_api_key")), "unauthorized"),
    "403": (always(refusal(403, "country")), "forbidden"),
    "404": (always(Reply(404, {"detail": "Not Found"})), "not_found"),
    "400 whatever is sent": (always(refusal(400, "no")), "bad_request"),
    "503 for good": (always(refusal(503, "overloaded")), "overloaded"),
    "429 for good": (always(refusal(429, "slow down")), "rate_limited"),
}
"""No verdict can arrive: the way, and the word that it is published with."""
