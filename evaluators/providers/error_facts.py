"""Status, body and headers of an error and the errors behind it, read from attributes by their names."""

import email.utils
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

from evaluators.matching.json_values import object_of
from evaluators.model import JSON

WORDS: Mapping[str, str] = {
    "timeout": "the judge did not answer in time",
    "rate_limited": "the judge refused: too many requests",
    "unreachable": "the provider cannot be reached",
    "certificate": "the provider's certificate is not trusted",
    "overloaded": "the provider is overloaded",
    "server_error": "the provider failed",
    "again": "the provider asks to be asked again",
    "no_quota": "the account's quota or credit is used up",
    "no_api_key": "there is no API key for this provider",
    "unauthorized": "the provider does not accept the API key",
    "forbidden": "the provider forbids the request",
    "not_found": "the provider does not know the model or the path",
    "parameter": "the provider refuses a parameter",
    "too_long": "prompt and answer do not fit into the model's context",
    "too_large": "the provider calls the request too large",
    "bad_request": "the provider calls the request malformed",
    "content_filter": "the provider's content filter stopped it",
    "refusal": "the model refused to answer",
    "cut": "the answer was cut off at its limit of tokens",
    "no_answer": "the response holds no answer",
    "unreadable": "the response is not a completion",
    "unknown_model": "no provider is known for this name of a model",
    "missing_library": "a library that this provider needs is not installed",
    "unknown": "the request failed",
}
"""Every way to fail, as it is published."""

HINTS: Mapping[str, str] = {
    "timeout": "check {0}.base_url and judge.timeout",
    "rate_limited": "wait, or lower judge.concurrency and judge.budget.calls_per_minute",
    "unreachable": "check {0}.base_url and the proxy",
    "certificate": "check {0}.base_url; SSL_CERT_FILE names a CA of your own",
    "no_quota": "check the account that {0}.api_key belongs to",
    "no_api_key": "set {0}.api_key; a server that wants none takes any text",
    "unauthorized": "check {0}.api_key",
    "forbidden": "check what {0}.api_key may use",
    "not_found": "check {0}.model and {0}.base_url",
    "too_long": "lower judge.max_tokens or judge.max_prompt, or raise the context of the server",
    "too_large": "lower judge.max_prompt",
    "cut": "raise judge.max_tokens",
    "unreadable": "check {0}.base_url: it must lead to the provider's API",
    "no_answer": "check {0}.base_url and {0}.model",
    "unknown_model": "begin {0}.model with its provider, such as openai/",
}
PARAMETER_HINTS: Mapping[str, str] = {
    "temperature": "set judge.temperature: null",
    "max_tokens": "set judge.max_tokens: null, or a smaller number",
}

_KNOWN_CODES = """
account_deactivated api_error authentication_error bad_request billing_hard_limit_reached billing_not_active
content_filter content_policy_violation context_length_exceeded deploymentnotfound insufficient_quota invalid_api_key
invalid_model invalid_prompt invalid_request_error invalid_type invalid_value model_not_found not_found_error
overloaded_error permission_error rate_limit_error rate_limit_exceeded request_too_large requires_payment
resource_exhausted responsibleaipolicyviolation server_error string_above_max_length timeout_error unknown_parameter
unrecognized_request_argument unsupported_country_region_territory unsupported_parameter unsupported_value
validationexception
"""
CODES = frozenset(_KNOWN_CODES.split())
"""Codes that are published, in lower case: a code of a gateway's own making may be any text."""
VAGUE = frozenset({"invalid_request_error", "server_error", "api_error", "bad_request"})
"""Codes that say less than any other."""
_KNOWN_PARAMETERS = """
temperature max_tokens max_completion_tokens max_output_tokens max_new_tokens num_predict response_format tools
tool_choice messages model
"""
PARAMETERS = frozenset(_KNOWN_PARAMETERS.split())
"""Parameters that are published."""


_CAUSES = 20  # errors behind an error that are looked at


def chain_of(error: BaseException) -> Iterator[BaseException]:
    behind: BaseException | None = error
    for _ in range(_CAUSES):
        if behind is None:
            return
        yield behind
        behind = behind.__cause__ or behind.__context__


def is_named(error: BaseException, *names: str) -> bool:
    return any(kind.__name__ in names for kind in type(error).__mro__)


def status_of(error: BaseException | None) -> int | None:
    """The HTTP status that it bears."""
    own = getattr(error, "status_code", None) or getattr(
        getattr(error, "response", None), "status_code", None
    )
    return own if isinstance(own, int) else None


def is_error_in_answer(error: BaseException) -> bool:
    """Whether the response had status 200 and an error as its body: litellm raises a bare Exception for it."""
    return type(error) is Exception and hasattr(error, "status_code")


def status_in_answer(error: BaseException) -> int:
    named = str(getattr(error, "status_code", None))
    return int(named) if named.isdecimal() and 400 <= int(named) < 600 and named != "422" else 200


def bodies_of(error: BaseException) -> Iterator[Mapping[str, JSON]]:
    """What an error holds of the response's body: the error in it, and itself."""
    for value in (getattr(error, "body", None), _json(getattr(error, "message", None))):
        body = object_of(value)
        if body is not None:
            yield body
            inner = object_of(body.get("error"))
            if inner is not None:
                yield inner


def _json(text: Any) -> JSON:
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def places(detail: JSON) -> Iterator[str]:
    for each in cast("list[JSON]", detail) if isinstance(detail, list) else ():
        place = (object_of(each) or {}).get("loc")
        yield from map(str, cast("list[JSON]", place) if isinstance(place, list) else ())


def retry_after(chain: tuple[BaseException, ...]) -> float | None:
    """Seconds that the provider asks to wait."""
    for each in chain:
        headers: Any = (
            getattr(each, "litellm_response_headers", None)
            or getattr(getattr(each, "response", None), "headers", None)
            or {}
        )
        milliseconds = _seconds(headers.get("retry-after-ms"))
        if milliseconds is not None:
            return milliseconds / 1000
        asked = headers.get("retry-after")
        if asked is not None:
            return _seconds(asked) if _seconds(asked) is not None else _until(asked, headers)
    return None


def _seconds(text: Any) -> float | None:
    try:
        seconds = float(str(text))
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


def _until(date: Any, headers: Any) -> float | None:
    """Seconds until a date, by the server's own clock; None where it does not give its time."""
    try:
        then = email.utils.parsedate_to_datetime(str(date))
        begin = email.utils.parsedate_to_datetime(str(headers.get("date")))
        return max(0.0, (then - begin).total_seconds())
    except (ValueError, TypeError):
        return None
