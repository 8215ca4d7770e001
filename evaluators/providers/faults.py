"""What a provider's error means: whether it may pass, which parameter of ours it refuses, how it is published.

Read from the error and the errors behind it (status, headers, body), so no library is imported here. A provider's text
may repeat the prompt: it is searched for the name of a parameter and never published.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from evaluators.judging.prompt import JudgeError
from evaluators.providers.error_facts import (
    CODES,
    HINTS,
    PARAMETER_HINTS,
    PARAMETERS,
    VAGUE,
    WORDS,
    bodies_of,
    chain_of,
    is_error_in_answer,
    is_named,
    places,
    retry_after,
    status_in_answer,
    status_of,
)

Parameter = Literal["schema", "temperature", "max_tokens"]
"""What we send beside the prompt, and can leave out."""
_SEARCHED = 4096  # characters of a provider's text that are searched

_QUOTA = frozenset(
    ["insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "requires_payment"]
)
_FILTERED = frozenset(
    ["content_filter", "content_policy_violation", "responsibleaipolicyviolation"]
)

_NAMES: Mapping[Parameter, re.Pattern[str]] = {
    "temperature": re.compile(r"\btemperature\b", re.IGNORECASE),
    "max_tokens": re.compile(
        r"\bmax[ _-]?(?:completion|output|new)?[ _-]?tokens\b|\bnum_predict\b|\b(?:output|completion) tokens\b",
        re.IGNORECASE,
    ),
    "schema": re.compile(
        r"\bresponse[ _-]?(?:format|schema)\b|\bjson[ _-]?schema\b|\bstructured[ _-]?outputs?\b|\bguided\b"
        r"|\bgrammar\b|\boutput_(?:config|format)\b|\btool_choice\b|\btools?\b|\bschema\b",
        re.IGNORECASE,
    ),
}
_FORMAT = re.compile(
    r"\bresponse_format\b|\bjson_schema\b|\bstructured[ _-]outputs?\b|\bguided[ _]\w|\bgrammar\b",
    re.IGNORECASE,
)
_FILTER = re.compile(r"content management policy|content[ _]filter|safety polic", re.IGNORECASE)
_CONTEXT = re.compile(
    r"context[ _](?:length|window|size)|maximum context|prompt is too long|too many (?:input )?tokens",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    r"un(?:supported|recognized|known|expected)|not (?:supported|permitted|allowed)|(?:not|n.t) support"
    r"|deprecated|\bextra\b",
    re.IGNORECASE,
)
_UNREADABLE = re.compile(
    r"invalid response from LLM endpoint|converting to valid response|provider returned 'choices'"
)
_MISREAD = (LookupError, TypeError, AttributeError, ValueError)
"""What a library raises that reads another body than it expects."""
_NO_KEY = re.compile(
    r"missing credentials|missing .{0,40}api.?key|api_key client option", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFault:
    word: str  # one of WORDS
    passing: bool = False  # the same request may be answered later
    refuses: Parameter | None = None  # the parameter of ours that it names
    too_much: bool = False  # of max_tokens: a smaller number may be taken
    unclear: bool = False  # the request is called malformed, and nothing says why
    status: int | None = None
    code: str | None = None
    parameter: str | None = None  # as the provider calls it
    link: str | None = None  # the kind of connection error
    retry_after: float | None = None
    billed: bool = False  # the provider bills it

    @property
    def may_refuse_schema(self) -> bool:
        """A server may fail on a schema, rather than say that it knows none."""
        return self.passing and self.status is not None and self.status >= 500

    def cleared(self) -> ProviderFault:
        if self.word != "parameter":
            return replace(self, refuses=None)
        return replace(self, word="bad_request", refuses=None, parameter=None)

    def error(self) -> JudgeError:
        details = [self.link] if self.link else []
        details += [f"status {self.status}"] if self.status else []
        details += [f"code {self.code}"] if self.code else []
        details += [f"parameter {self.parameter}"] if self.parameter else []
        return JudgeError(
            type=self.word if self.word in ("timeout", "rate_limited") else "provider_error",
            message=WORDS[self.word] + (f" ({', '.join(details)})" if details else ""),
            retry_after=self.retry_after,
            passing=self.passing,
            billed=self.billed,
            hint=PARAMETER_HINTS.get(self.refuses or "", "") or HINTS.get(self.word, ""),
        )


class FaultyAnswer(Exception):
    """An answer of a provider that holds no text that could be an answer."""

    def __init__(self, fault: ProviderFault) -> None:
        super().__init__(fault.word)
        self.fault = fault


def fault_of(error: BaseException) -> ProviderFault:
    if isinstance(error, FaultyAnswer):
        return error.fault
    chain = tuple(chain_of(error))
    refused = next((each for each in chain if is_named(each, "HTTPStatusError")), None)
    if refused is None and (fault := _without_response(chain)) is not None:
        return fault
    said = _ProviderError.of(chain)
    in_answer = next((each for each in chain if is_error_in_answer(each)), None)
    if refused is None and in_answer is not None:
        return _refusal(status_in_answer(in_answer), said, None)
    return _refusal(status_of(refused) or status_of(error), said, retry_after(chain))


# --- no response ------------------------------------------------------------------------------------------------------


def _without_response(chain: tuple[BaseException, ...]) -> ProviderFault | None:
    """The fault of a request to which no response came that could be read; None: a status tells more."""
    if any(isinstance(each, TimeoutError) or "Timeout" in type(each).__name__ for each in chain):
        return ProviderFault(word="timeout", passing=True)
    if any(isinstance(each, ssl.SSLCertVerificationError) for each in chain):
        return ProviderFault(word="certificate")
    if (link := _broken_link(chain)) is not None:
        return ProviderFault(word="unreachable", passing=True, link=link)
    text = " ".join(str(each)[:_SEARCHED] for each in chain)
    if _UNREADABLE.search(text) or any(isinstance(each, _MISREAD) for each in chain):
        return ProviderFault(word="unreadable", passing=True, billed=True)
    return _never_sent(chain, text)


def _never_sent(chain: tuple[BaseException, ...], text: str) -> ProviderFault | None:
    """What the library says without asking the provider."""
    if any(isinstance(each, ImportError) for each in chain):
        return ProviderFault(word="missing_library")
    if _NO_KEY.search(text) or is_named(chain[0], "AuthenticationError", "NoCredentialsError"):
        return ProviderFault(word="no_api_key")
    return ProviderFault(word="unknown_model") if "LLM Provider NOT provided" in text else None


def _broken_link(chain: tuple[BaseException, ...]) -> str | None:
    """The kind of connection error: refused, reset, no such host; None when there is none."""
    deepest = next(
        (each for each in chain if isinstance(each, (ConnectionError, socket.gaierror))), None
    )
    if deepest is not None:
        return type(deepest).__name__
    foreign = (each for each in chain if not type(each).__module__.startswith("litellm"))
    return next(
        (
            type(each).__name__
            for each in foreign
            if is_named(each, "APIConnectionError", "TransportError", "ClientError")
        ),
        None,
    )


# --- a response that is not an answer ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ProviderError:
    words: frozenset[str]  # its code and type, in lower case
    parameters: tuple[str, ...]
    text: str  # never published

    @classmethod
    def of(cls, chain: tuple[BaseException, ...]) -> _ProviderError:
        bodies = [body for each in chain for body in bodies_of(each)]
        words = [
            str(body[key]).lower()
            for body in bodies
            for key in ("code", "type", "status")
            if body.get(key)
        ]
        codes = (getattr(each, name, None) for each in chain for name in ("code", "status_code"))
        words += [str(code).lower() for code in codes if code]
        parameters = [str(body["param"]) for body in bodies if body.get("param")]
        parameters += [name for body in bodies for name in places(body.get("detail"))]
        text = " ".join(str(each)[:_SEARCHED] for each in chain)
        return cls(frozenset(words), tuple(parameters), text)

    @property
    def code(self) -> str | None:
        known = sorted(self.words & CODES, key=lambda code: (code in VAGUE, code))
        return known[0] if known else None

    @property
    def parameter(self) -> str | None:
        return next((each for each in self.parameters if each in PARAMETERS), None)

    def names_a_format(self) -> bool:
        """Whether the form of an answer is named, for a status that does not say that a parameter is wrong."""
        return _FORMAT.search(self.text) is not None

    def refused(self) -> Parameter | None:
        for named in self.parameters:
            for parameter, name in _NAMES.items():
                if name.search(named):
                    return parameter
        found: dict[int, Parameter] = {
            match.start(): parameter
            for parameter, name in _NAMES.items()
            if (match := name.search(self.text)) is not None
        }
        return found[min(found)] if found else None


def _refusal(status: int | None, said: _ProviderError, retry_after: float | None) -> ProviderFault:
    word, passing = _meaning(status, said)
    fault = ProviderFault(
        word=word,
        passing=passing,
        refuses=_refused(word, said),
        too_much=word == "too_long",
        unclear=word == "bad_request",
        status=status,
        code=said.code,
        retry_after=retry_after,
    )
    if fault.refuses is None or word not in ("bad_request", "not_found"):
        return fault
    name = "response_format" if fault.refuses == "schema" else fault.refuses
    is_too_much = fault.refuses == "max_tokens" and not _UNKNOWN.search(said.text)
    return replace(fault, word="parameter", parameter=said.parameter or name, too_much=is_too_much)


def _refused(word: str, said: _ProviderError) -> Parameter | None:
    if word == "bad_request":
        return said.refused()
    if word in ("not_found", "server_error"):
        word = "format" if said.names_a_format() else ""
    named: Mapping[str, Parameter] = {"too_long": "max_tokens", "format": "schema"}
    return named.get(word)


_BY_STATUS: Mapping[int, tuple[str, bool]] = {
    401: ("unauthorized", False),
    402: ("no_quota", False),
    403: ("forbidden", False),
    **dict.fromkeys((404, 405), ("not_found", False)),
    **dict.fromkeys((408, 409, 425), ("again", True)),
    413: ("too_large", False),
    429: ("rate_limited", True),
    **dict.fromkeys((503, 529), ("overloaded", True)),
}


def _meaning(status: int | None, said: _ProviderError) -> tuple[str, bool]:
    """The word, and whether it may pass."""
    if said.words & _QUOTA:
        return "no_quota", False
    if status is None:
        return "unknown", False
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500 or status < 400:
        return "server_error", True
    return _malformed(said), False


def _malformed(said: _ProviderError) -> str:
    if said.words & _FILTERED or _FILTER.search(said.text):
        return "content_filter"
    if "context_length_exceeded" in said.words or _CONTEXT.search(said.text):
        return "too_long"
    return "bad_request"
