"""Whether what a call or a model returned says that it failed: by its structure, never by its words."""

from evaluators.dialects.content.call_marks import (
    AROUND,
    BODIES,
    DONE,
    ERROR_PARTS,
    ERRORS,
    IS_ERROR,
    NOTHING,
    OF_ERROR,
    STATES,
    CallIdentity,
    is_of_call,
)
from evaluators.dialects.decoding.values import as_dict, says_error, string, text_of
from evaluators.model import JSON

UNSAID = "error"  # the error of a call of which nothing more is known
_FAILED = frozenset({"error", "failed", "failure"})
SAYS_ERROR = IS_ERROR.union(ERRORS)
CODES = ("errorcode", "errortype", "exceptiontype")
_NO_CODE = (*NOTHING, 0, "0", "OK", "ok")
_MAY_SAY = SAYS_ERROR.union(DONE, ("status",))  # these two with a message beside them


def says_failed(fields: dict[str, JSON]) -> bool:
    return (
        any(is_true(fields[key]) for key in fields.keys() & IS_ERROR)
        or any(_is_failed(fields.get(key)) for key in STATES)
        or any(fields.get(key) is False for key in DONE)
        or fields.get("type") in (*ERROR_PARTS,)
        or fields.get("partkind") == "retry-prompt"
    )


def says_why(fields: dict[str, JSON]) -> str | None:
    """The error, `UNSAID` where none is stated; None: nothing says that the call failed."""
    said = next((fields[key] for key in ERRORS if says_error(fields.get(key))), None)
    if said is not None:
        return words_of(said)
    has_code = any(fields.get(key) not in _NO_CODE for key in CODES)
    return UNSAID if has_code or says_failed(fields) else None


def _is_failed(state: JSON) -> bool:
    return isinstance(state, str) and state.lower() in _FAILED


def is_true(value: JSON) -> bool:
    """Also as languages without a type for it write it: `1` and "True"."""
    return value == 1 or (isinstance(value, str) and value.lower() == "true")


def error_in(fields: dict[str, JSON], call: CallIdentity) -> str | None:
    """The error that is all a result says. None: it says more, as a tool whose answer has a field for errors."""
    if fields.keys().isdisjoint(_MAY_SAY):
        return None
    said = next((fields[key] for key in ERRORS if says_error(fields.get(key))), None)
    if any(is_true(fields[key]) for key in fields.keys() & IS_ERROR):
        return UNSAID if said is None else words_of(said)
    if said is None:
        failed = _is_failed(fields.get("status")) or any(fields.get(key) is False for key in DONE)
        if not (failed and string(fields.get("message"))):
            return None
        said = True
    of_call, is_answer = is_of_call(fields, call), _is_of_server(fields)
    for key, value in fields.items():
        says_nothing = (
            key in OF_ERROR
            or (key in BODIES and value in NOTHING)
            or (key in STATES and (_is_failed(value) if isinstance(value, str) else is_answer))
            or (key in DONE and value is False)
            or (key in AROUND and of_call)
            or (key in ("message", "timestamp") and (is_answer or said is True))
        )
        if not says_nothing:
            return None
    return string(fields.get("message")) or UNSAID if said is True else words_of(said)


def _is_of_server(fields: dict[str, JSON]) -> bool:
    """Whether it is the answer of a web server that failed, as Spring Boot and FastAPI write it."""
    codes = map(fields.get, ("status", "statuscode", "code"))
    return any(isinstance(code, int) and 400 <= code < 600 for code in codes)


_ANSWERS = ("choices", "candidates", "content", "output", "message", "messages", "parts", "text")


def answered_error(value: JSON) -> str | None:
    """The error that a provider gave in place of a model's answer: OpenAI's, Anthropic's, vLLM's, ADK's, AWS's."""
    item = as_dict(value)
    if not item or any(item.get(key) for key in _ANSWERS if key != "message"):
        return None
    code = item.get("error_code") or item.get("errorCode") or item.get("__type")
    if item.get("object") == "error" or code:
        texts = map(
            string, (item.get("error_message"), item.get("errorMessage"), item.get("message"))
        )
        return next(filter(None, texts), None) or text_of(code) or UNSAID
    error = item.get("error")
    if item.get("message") or not says_error(error):
        return None
    return words_of(error) if as_dict(error) or len(item) == 1 else None


def words_of(error: JSON) -> str:
    message = string(as_dict(error).get("message"))
    return message or (None if error is True else text_of(error)) or UNSAID
