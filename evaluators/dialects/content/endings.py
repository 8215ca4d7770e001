"""How a span or a model's answer ended without failing: it waits for somebody, was stopped, was cut, was blocked.

By types and codes alone, never by the words of a message: frameworks and people write those in every language.
"""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import islice

from evaluators.dialects.decoding.decode import ask
from evaluators.dialects.decoding.key_sets import Among
from evaluators.dialects.decoding.values import as_dict, as_list, string, text_of, unwrap, words
from evaluators.model import JSON, Ending, Event, Span

PAUSES = frozenset(
    {
        "GraphBubbleUp",  # LangGraph, in Python and JS
        "GraphInterrupt",
        "NodeInterrupt",
        "ParentCommand",
        "ApprovalRequired",  # pydantic-ai
        "CallDeferred",
        "HumanFeedbackPending",  # CrewAI
        "InterruptException",  # Strands
        "WaitingForEvent",  # LlamaIndex
    }
)
"""What frameworks raise to wait for a person or another process, or to hand over to another agent."""

_CANCELLED = re.compile(
    r"""(api|async|call|client|context|domexception|future|generation|job|model|nsurlerror|operation|request|response
            |rpc|run|stream|task|thread|turn|user)*
        (cancel(l?ed|l?ation)?|abort)(err|error|exception|failure)?
    | errcanceled  # axios
    | (request|response)aborted(error)?  # Django, Next.js, undici
    | generatorexit  # a stream in Python whose reader left
    | greenletexit  # gevent
    | keyboardinterrupt | sigint | userinterrupt(exception)?
    | (thread)?interruptedexception | closedbyinterruptexception  # Java and .NET
    | taskrevoked(error)?  # Celery
    | 20  # the number of JavaScript's AbortError; OTel's SDK for JS prefers a code to the name
    | client(disconnect(ed)?|closedrequest)(error)?  # Starlette
    | 499  # what nginx logs for a client that closed the request""",
    re.VERBOSE,
)
"""Types of errors by which somebody stopped a run: in lower case, letters and digits of the last name alone.

Orders are cancelled too, so other prefixes do not count. .NET's TaskCanceledException may be a time-out. Not here,
because their types say nothing of a stop: Go's `*errors.errorString`, which context.Canceled shares with most errors,
Java's InterruptedIOException, which may be a time-out, and a database's QueryCanceled, which mostly is one.
"""
_OF_RUBY = frozenset({"async::stop", "async::cancel", "interrupt"})
"""Whole names in lower case: models stop, too."""
_TIME_OUT = re.compile(r"time(?:d)?out|deadline")
_TIME_OUTS = frozenset({"23", "504", "408"})
"""The number of JavaScript's TimeoutError, and HTTP's."""
_CAUSED_BY_TIME_OUT = "---> System.TimeoutException"
"""In the trace of calls that .NET records of an exception: the type of the one that led to it."""
_NAME = re.compile(r"[^.:/\\$+#(]+(?=\(|$)")
"""The last name; in Rust what a variant holds may follow: `JoinError::Cancelled(Id(7))`."""
_NO_LETTER = re.compile(r"[^a-z0-9]")

_GRPC = ("rpc.grpc.status_code", "rpc.response.status_code")
_HTTP = ("http.response.status_code", "http.status_code")
_STATED = "strands.cancellation.type"
CODES = frozenset({"error.type", "exception.type", *_GRPC, *_HTTP, _STATED})
"""Attributes that say how a span ended."""


def _finish(names: AbstractSet[str]) -> tuple[str, ...]:
    """Attributes that say why a model stopped: `gen_ai.response.finish_reasons`, `ai.response.finishReason`."""
    return tuple(sorted(n for n in names if _plain(n.rpartition(".")[2]) in _FINISH_KEYS))


_STATED_CODES = Among(*sorted(CODES))
_FINISH_KEYS = frozenset({"finishreason", "finishreasons", "stopreason"})
_KEY = 64  # characters of a key that are looked at, from its end: all that is remembered of it


@lru_cache(maxsize=1024)  # answers have the same keys again and again
def _says_why(key: str) -> bool:
    return _plain(key) in _FINISH_KEYS


def raised(span: Span) -> str:
    """The type of the last exception on the span, else of the one that its attributes state; empty: none is."""
    if span.events:  # of most spans there are none, and this is asked of each
        for event in _exceptions(span):
            if kind := string(event.attributes.get("exception.type")):
                return kind
    stated = span.attributes.get("exception.type") or span.attributes.get("error.type")
    return "" if stated is None else text_of(stated) or ""


def exception_of(span: Span) -> str | None:
    """The message of the span's last exception event, else its type."""
    for event in _exceptions(span):
        message = string(event.attributes.get("exception.message"))
        return message or string(event.attributes.get("exception.type"))
    return None


def _exceptions(span: Span) -> Iterator[Event]:
    return (event for event in reversed(span.events) if event.name == "exception")


def pauses(span: Span) -> bool:
    if not (span.events or ask(span.attributes, _STATED_CODES)):
        return False
    return raised(span).rpartition(".")[2] in PAUSES


def is_cancelled(span: Span) -> bool:
    """Whether somebody stopped it, as its last exception or a code says."""
    codes = ask(span.attributes, _STATED_CODES)
    if not (codes or span.events):
        return False
    get = span.attributes.get
    if _STATED in codes:
        return not _TIME_OUT.search(_plain(text_of(get(_STATED))))
    if span.status == "ok":
        return False  # whoever set that knows that what was stopped did no harm
    kind = _kind(span)
    if _is_time_out(span, kind):
        return False
    return (
        _CANCELLED.fullmatch(kind) is not None
        or raised(span).lower() in _OF_RUBY
        or any(_plain(text_of(get(key))) in ("1", "cancelled", "canceled") for key in _GRPC)
        or any(text_of(get(key)) == "499" for key in _HTTP)
    )


def timed_out(span: Span) -> bool:
    """Whether a time-out or a deadline ended it: what it stopped within has failed."""
    if not (span.events or ask(span.attributes, _STATED_CODES)):
        return False
    get = span.attributes.get
    grpc = (_plain(text_of(get(key))) for key in _GRPC)
    return _is_time_out(span, _kind(span)) or any(
        code in ("4", "deadlineexceeded") for code in grpc
    )


def _is_time_out(span: Span, kind: str) -> bool:
    if kind in _TIME_OUTS or _TIME_OUT.search(kind):
        return True
    return _CAUSED_BY_TIME_OUT in _stack(span)


def _kind(span: Span) -> str:
    """The plain name of what was raised. A DOMException says at the head of its stack alone which one it is."""
    kind = _plain(raised(span))
    return _plain(_stack(span).partition(":")[0]) if kind == "domexception" else kind


def _stack(span: Span) -> str:
    stacks = (string(event.attributes.get("exception.stacktrace")) for event in _exceptions(span))
    return next(stacks, None) or ""


def _plain(name: str | None) -> str:
    found = _NAME.search(name or "")
    return _NO_LETTER.sub("", found.group().lower()) if found else ""


_ENDINGS: dict[str, Ending] = {
    **dict.fromkeys(
        words(
            """length maxtokens maxoutputtokens maxlength modellength tokenlimit modelcontextwindowexceeded"""
        ),
        "cut",
    ),
    **dict.fromkeys(
        words("""contentfilter contentfiltered refusal safety imagesafety blocklist prohibitedcontent spii
        guardrailintervened blocked"""),
        "blocked",
    ),
    "aborted": "cancelled",
}
"""By finish reason, in lower case and letters alone; every other one is of an answer that is whole."""
_UNSAID = frozenset({"", "unknown", "none", "null", "unspecified"})
_DEPTH = 8
_ITEMS = 16
"""Items of a list, and levels, in which a finish reason is looked for: an answer has few candidates."""
_NOT_WITHIN = frozenset({"arguments", "args", "input", "parameters", "messages", "tool_calls"})
"""What the model or the agent wrote: a tool may have a parameter of any name."""
Found = Ending | None


def ending_on(span: Span) -> Found:
    """Why the model stopped, as the span's attributes and events say; None: they do not."""
    for key in ask(span.attributes, _finish):
        if found := _ending_of(span.attributes.get(key)):
            return found
    for event in reversed(span.events):
        for key in ask(event.attributes, _finish):
            if found := _ending_of(event.attributes.get(key)):
                return found
    return None


def ending_in(answer: JSON, depth: int = 0) -> Found:
    """Why the model stopped, as what it answered says; the first of several candidates speaks."""
    if depth > _DEPTH:
        return None
    for each in islice(as_list(answer), _ITEMS):
        if found := ending_in(each, depth + 1):
            return found
    item = as_dict(answer)
    if found := _stated_in(item):
        return found
    for key, value in item.items():
        within = isinstance(value, dict | list) and key not in _NOT_WITHIN
        if within and (found := ending_in(value, depth + 1)):
            return found
    return None


def _stated_in(item: dict[str, JSON]) -> Found:
    if string(item.get("refusal")) or item.get("type") == "refusal":
        return "blocked"
    for key, value in item.items():
        if value and _says_why(key[-_KEY:]) and (found := _ending_of(value)):
            return found
    # OpenAI's Responses
    return _ending_of(as_dict(item.get("incomplete_details")).get("reason"))


def _ending_of(value: JSON) -> Found:
    value = unwrap(value)
    for each in as_list(value)[:_ITEMS]:
        if found := _ending_of(each):
            return found
    if not isinstance(value, str):
        return None
    word = _plain(value).removeprefix("finishreason")
    if word in _UNSAID:
        return None
    return _ENDINGS.get(word) or ("cancelled" if _CANCELLED.fullmatch(word) else "whole")
