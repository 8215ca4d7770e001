"""What is a call's in an object that may be one's result or its envelope: keys, and what is surely of a call.

Keys count without underscores, dashes and case, as Python, JavaScript and .NET spell them.
"""

from functools import lru_cache

import msgspec

from evaluators.dialects.decoding.values import as_dict, words
from evaluators.model import JSON

_MOST = 32  # keys of an envelope: the longest known, Agno's, has 18


@lru_cache(maxsize=4_096)  # frameworks have some hundred keys, the tools of a service some thousand
def plain(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


BODIES = words(
    """content contents result results response responses output returnvalue toolreturn tooloutput toolresponse
    toolresponses toolresult toolresults toolcallresult toolcallresults functionresponse responsedata value data payload
    items parts text observation update messages"""
)
GIVEN = words("arguments args input parameters toolinput toolargs kwargs toolkwargs rawinput")
CALL_IDS = words("toolcallid tooluseid callid toolid")
OWN_IDS = words("callid toolid")  # also what a tool of telephony or of a workshop returns
_IDS = CALL_IDS | {"id", "ref"}
NAMES = words("name toolname tool functionname")
_RAN = words(
    "startedat finishedat durationms elapsed elapsedms executiontime executiontimems latencyms"
)
"""How long a call took: no tool returns that of itself."""
IS_ERROR = words("iserror toolcallerror")
ERROR_PARTS = words("error-text error-json tool-error")  # of the AI SDK
_PARTS = ERROR_PARTS | words(
    "tool_call_response function_result functionResult FunctionResultContent tool_result tool-result toolresult"
    " function_call_output tool_call_output_item"
)
"""Types of the parts in which the convention, .NET, Anthropic, the AI SDK, Rig and OpenAI put what a tool returned."""
STATES = ("status", "state", "outcome")
DONE = ("success", "ok", "succeeded")
ERRORS = ("error", "errors", "errormessage", "exception", "exceptionmessage")
OF_ERROR = frozenset(ERRORS) | words(
    """errorcode errortype code statuscode errno exceptiontype trace traceback stack stacktrace detail details hint
    suggestion retryable retryafter jsonrpc path"""
)
AROUND = frozenset[str]().union(
    *(_IDS, NAMES, _RAN, IS_ERROR, STATES, DONE, GIVEN),
    words(
        """type role kind error jsonrpc metadata meta createdat created timestamp time date starttime endtime duration
        latency additionalkwargs responsemetadata artifact usagemetadata structuredcontent index stream islast
        isinterrupted isfinalanswer willcontinue scheduling attempt runattempts fromcache toolclass runid traceid
        eventid invocationid requestid childrunid author pluginname messagetype returndirect stopaftertoolcall dynamic
        exception partkind contenttype blocktype metrics origin from agent trackingid $type"""
    ),
)
_OTHERS = words("message description request function toolcall rawitem")
KNOWN_KEYS = AROUND | BODIES | OF_ERROR | _OTHERS
NOTHING: tuple[JSON, ...] = (None, "", [], {})


class CallIdentity(msgspec.Struct, frozen=True):
    """What is known of the call whose result is looked at."""

    name: str | None
    id: str | None


def fields_of(value: JSON) -> dict[str, JSON]:
    """What an object holds, by its plain keys; empty for another value, or more keys than any envelope has."""
    item = as_dict(value)
    return {plain(key): inner for key, inner in item.items()} if len(item) <= _MOST else {}


def is_of_call(fields: dict[str, JSON], call: CallIdentity) -> bool:
    """Whether anything in an object is surely of a call, and not of what a tool returned."""
    if names_call(fields, call) or not fields.keys().isdisjoint(_SURELY):
        return True
    if call.id is None and any(isinstance(fields.get(key), str) for key in OWN_IDS):
        return True
    kind = fields.get("type") or fields.get("$type") or fields.get("contenttype")
    return (isinstance(kind, str) and kind in _PARTS) or fields.get("partkind") == "retry-prompt"


_SURELY = _RAN | IS_ERROR | (CALL_IDS - OWN_IDS) | {"jsonrpc", "origin"}


def names_call(fields: dict[str, JSON], call: CallIdentity) -> bool:
    if call.name and any(is_name(fields[key], call.name) for key in fields.keys() & NAMES):
        return True
    return bool(call.id) and any(fields[key] == call.id for key in fields.keys() & _IDS)


def is_name(value: JSON, name: str) -> bool:
    """Whether a text is the tool's name; Semantic Kernel's has its plug-in in front: `Bay-count_pallets`."""
    return value == name or (isinstance(value, str) and value.rpartition("-")[2] == name)
