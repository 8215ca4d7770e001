"""What a tool returned and was given, without what is around both, and whether the result says that it failed.

The one place that takes off envelopes, for all dialects: `{"id", "name", "response"}` of ADK, a message of LangChain, a
block of AgentScope, an answer to MCP's tools/call. What is the call's (its id, name, times and state) is not the
tool's: a tool that is called in a loop would seem to return something else each time. An object is only opened where it
holds nothing but that and one body, and where something in it is surely of the call.
"""

import re
from collections.abc import Set as AbstractSet

import msgspec

from evaluators.dialects.content.blocks import is_block, read_content
from evaluators.dialects.content.call_marks import (
    AROUND,
    BODIES,
    DONE,
    ERROR_PARTS,
    GIVEN,
    IS_ERROR,
    KNOWN_KEYS,
    NAMES,
    NOTHING,
    OWN_IDS,
    STATES,
    CallIdentity,
    fields_of,
    is_of_call,
    names_call,
    plain,
)
from evaluators.dialects.content.facts import Facts
from evaluators.dialects.content.failures import (
    CODES,
    SAYS_ERROR,
    UNSAID,
    error_in,
    says_failed,
    says_why,
    words_of,
)
from evaluators.dialects.content.messages import read_messages
from evaluators.dialects.content.tools import SCHEMAS
from evaluators.dialects.decoding.decode import ask
from evaluators.dialects.decoding.reprs import read_fields, read_repr
from evaluators.dialects.decoding.values import (
    as_dict,
    as_list,
    says_error,
    string,
    unwrap,
)
from evaluators.model import JSON

_DEPTH = 8
"""Envelopes inside each other that are taken off: frameworks write two, a gateway may add one."""
_HEAD = 2_048  # where a wrapping shows itself: a result is only parsed when its first characters hint at one
_HINTS = (
    *("tool_call", "toolCall", "CallId", "ToolMessage", '"lc"', "raw_output", "toolResult"),
    *("isError", "is_error", "iserror", "tool_use", "toolUse", "FunctionResult"),
)
# Words, not a pattern: a search for one word takes a twentieth of the time.
_FIRST_KEY = re.compile(
    r"""[\[{\s]*["'](\$?[\w-]+)["']\s*:
    |\[?(?:(?:[A-Z]\w*\()?(?=\w+=)|\s*\{\s*(?=\w+:\s))([A-Za-z_]\w*)""",
    re.VERBOSE,
)
"""The first key of an object, of the first object of a list, or of what Python or JavaScript shows of one."""
_TAG = "<tool_use_error>"
_TEXTS = {
    "Call id: ": ("\nObservation:\n", ""),
    _TAG: (_TAG, "</tool_use_error>"),
    "ToolExecution{request=": ('" }, result=', "}"),
    "ToolExecution { request = ": ('" }, result = "', '" }'),
    "ToolExecutionResult{": ("resultText=", "}"),
    "ToolExecutionResultMessage": (' text = "', '"'),
    "ToolResponseMessage": ("responseData=", "]], messageType="),
}
"""How texts begin that are an envelope, and what comes before and after the result in them: what smolagents tells a
model, Claude Code's tag for a failure, what Java shows of LangChain4j's executions and messages, and of Spring AI's."""
_IS_FAILED = re.compile(r"\bisError ?= ?true\b")
_BEGIN = tuple(_TEXTS)
_SCHEMAS = (*SCHEMAS, "args_schema", "params_json_schema")


class ToolOutcome(msgspec.Struct, frozen=True, kw_only=True):
    result: JSON = None
    id: str | None = None
    error: str | None = None
    """Why the call failed, `UNSAID` where only its result says so; None: nothing says that it did."""
    name: str | None = None  # the tool's name, where its answer states it


def outcome_of(value: JSON, name: str | None = None, call_id: str | None = None) -> ToolOutcome:
    """The result in what was recorded of a call of the tool `name`. Any other text stays as it is."""
    if isinstance(value, str):
        if value[:1] == '"':
            value = unwrap(value)
        is_own = isinstance(value, str) and _FIRST_KEY.match(value) is None
        if is_own and not value.startswith(_BEGIN):
            return ToolOutcome(result=value)
    found = ToolOutcome(result=value)
    shown: JSON = None
    for _ in range(_DEPTH):
        call = CallIdentity(name or found.name, call_id or found.id)
        shown, hinted = _parsed(found.result)
        inner = _opened(shown, call, hinted=hinted)
        if inner is None:
            break
        found = ToolOutcome(
            result=inner.result,
            id=found.id or inner.id,
            error=found.error or inner.error,
            name=found.name or inner.name,
        )
    if found.error not in (None, UNSAID):
        return found
    if not isinstance(shown, dict):
        return found
    failed = error_in(fields_of(shown), CallIdentity(name, call_id))
    return found if failed is None else msgspec.structs.replace(found, error=failed)


def _in_text(text: str) -> ToolOutcome | None:
    if not text.startswith(_BEGIN):
        return None
    begin, (before, behind) = next(each for each in _TEXTS.items() if text.startswith(each[0]))
    head, found, inner = text.partition(before)
    tail = ""
    if behind:
        inner, found, tail = inner.rpartition(behind)
    if not found:
        return None
    of_result = begin.startswith("ToolExecutionResult")  # else the arguments are in front
    failed = of_result and (_IS_FAILED.search(head) or _IS_FAILED.search(tail))
    if begin == _TAG:
        if tail.strip():
            return None
        failed = True
    return ToolOutcome(result=inner, error=UNSAID if failed else None)


def arguments_in(value: JSON, name: str | None, call_id: str | None) -> JSON:
    """The arguments in a whole call: an object that names this very call, and holds nothing that is not of a call."""
    if len(as_dict(value)) < 2:  # the arguments, and what names the call
        return value
    fields = fields_of(value)
    given = fields.keys() & GIVEN
    if (
        len(given) != 1
        or not fields.keys() <= AROUND
        or not names_call(fields, CallIdentity(name, call_id))
    ):
        return value
    return unwrap(fields[given.pop()])


def _marks(names: AbstractSet[str]) -> tuple[tuple[str, str], ...]:
    """The attributes that say how a tool's call ended: those of a flag, and those of the tool or its protocol.

    Each with the plain key that an object would have for it.
    """
    marks = ((name, _plain_mark(name)) for name in sorted(names))
    return tuple((name, mark) for name, mark in marks if _is_mark(name, mark, names))


def _plain_mark(name: str) -> str:
    words = name.split(".")[-2:]
    mark = plain("".join(words) if words[-1] in _OF_AN_ERROR else words[-1])
    return mark if mark in IS_ERROR else mark.removeprefix("tool").removeprefix("call")


def _is_mark(name: str, mark: str, names: AbstractSet[str]) -> bool:
    if not _OF_TOOL.search(name) or _GIVEN.search(name):
        return mark in IS_ERROR or name in _BARE
    around = name[: name.rfind(".") + 1]
    if mark in IS_ERROR or mark not in _SAYS_HOW or not _RETURNED.search(around):
        return mark in _SAYS_HOW
    # With others beside it that are no call's, it is a field of what the tool returned.
    beside = (plain(n.removeprefix(around)) for n in names if n.startswith(around))
    return len(names) <= _MANY and KNOWN_KEYS.issuperset(beside)


_OF_TOOL = re.compile(r"(?:^|[._])(?:tool|tool_?call|mcp|jsonrpc)[._]", re.IGNORECASE)
_GIVEN = re.compile("arg|param|input", re.IGNORECASE)
_RETURNED = re.compile("result|output|response", re.IGNORECASE)
"""Of the keys under which what a tool was given or returned is spread."""
_MANY = 128
"""Attributes among which fields of a result are told apart: that costs the square, and few spans have half as many."""
_OF_AN_ERROR = ("message", "type", "code")
_SAYS_HOW = SAYS_ERROR.union(STATES, DONE, CODES)
_BARE = ("error", "error.message", "exception.message", "exception.type", "success")


def settle(facts: Facts) -> None:
    name, attributes = facts.tool_name, facts.span.attributes
    if facts.tool_id is None and facts.kind == "tool":
        stated = string(attributes.get("gen_ai.tool.call.id"))
        facts.tool_id = None if stated == "<not specified>" else stated  # how ADK writes none
    outcome = outcome_of(facts.result, name, facts.tool_id)
    facts.result, facts.tool_id = outcome.result, facts.tool_id or outcome.id
    facts.arguments = arguments_in(facts.arguments, name, facts.tool_id)
    if facts.tool_error is None and facts.kind == "tool":
        marks = ask(attributes, _marks) if facts.rejected is None else ()
        kind = string(attributes.get("error.type"))
        said = UNSAID if kind and facts.result else kind
        if marks:
            values = ({mark: unwrap(attributes.get(key))} for key, mark in marks)
            stated = [why for value in values if (why := says_why(value))]
            said = next((why for why in stated if why != UNSAID), UNSAID) if stated else said
        facts.tool_error = outcome.error or said


# --- envelopes -------------------------------------------------------------------------------------------------------


def _parsed(value: JSON) -> tuple[JSON, bool]:
    """What a text holds that may be a wrapping, else the text; and whether it may be a message."""
    if not isinstance(value, str):
        return value, True
    head = _FIRST_KEY.match(value)
    if head is None:
        return value, False
    key, field = head.groups()
    ends = value if len(value) <= 2 * _HEAD else f"{value[:_HEAD]}\n{value[-_HEAD:]}"
    hinted = any(map(ends.__contains__, _HINTS))
    if not hinted and plain(key or field) not in KNOWN_KEYS:
        return value, False
    return (read_repr(value) or read_fields(value) or value) if field else unwrap(value), hinted


def _opened(value: JSON, call: CallIdentity, *, hinted: bool) -> ToolOutcome | None:
    """What is inside; None: it is what the tool returned. `hinted`: whether it may be a message."""
    if isinstance(value, str):
        return _in_text(value)
    item, fields = as_dict(value), fields_of(value)
    if _is_definition(item or as_dict((as_list(value) or [None])[0]), call.name):
        return ToolOutcome()
    if "raw_output" in item and isinstance(item.get("tool_name"), str):
        return _of_llama_index(item)
    if hinted or "role" in (item or as_dict((as_list(value) or [None])[0])):
        results = [result for m in read_messages(value, "output") for result in m.results]
        if len(results) == 1 or (results and hinted):
            last = results[-1]
            failed = UNSAID if last.is_error or says_failed(fields) else None
            return ToolOutcome(result=last.content, id=last.id, error=failed, name=last.name)
    if not item:
        return _of_blocks(as_list(value), call)
    return _in_envelope(fields, call) or _of_callback(item) or _without_id(item, call)


def _in_envelope(fields: dict[str, JSON], call: CallIdentity) -> ToolOutcome | None:
    bodies = [key for key in fields if key in BODIES]
    if len(bodies) > 1:  # the same in two forms, or only one says anything
        bodies = [key for key in bodies if fields[key] not in NOTHING][:2] or bodies[:1]
        bodies = bodies[: 1 + (fields[bodies[0]] != fields[bodies[-1]])]
    around = fields.keys() - BODIES
    if len(bodies) != 1 or not all(_is_around(key, fields[key], call) for key in around):
        return None
    body = fields[bodies[0]]
    content = as_list(body)
    if not (
        is_of_call(fields, call)
        or any(is_of_call(fields_of(fields[key]), call) for key in around)
        or (bodies[0] in _BLOCKS and _are_texts(content))
        or _holds_envelope(body, call)
    ):
        return None
    are_blocks = bodies[0] == "content" and all(is_block(as_dict(each)) for each in content)
    text = read_content(content).text if content and are_blocks else None
    error = fields.get("error") or fields.get("exception")
    failed = UNSAID if says_failed(fields) else None
    if says_error(error) and body in NOTHING:
        failed, body = words_of(error), error
    elif error is True:
        failed = UNSAID
    sure = _SURE_IDS if fields.keys().isdisjoint(_SAYS_OF_CALL) else _ALL_IDS
    ids = (string(fields.get(key)) for key in sure)
    typed = as_dict(body)
    if typed.keys() == {"type", "value"} and "toolcallid" in fields:  # the AI SDK's
        failed = UNSAID if typed["type"] in (*ERROR_PARTS,) else failed
        body = typed["value"]
    return ToolOutcome(
        result=body if text is None else text, id=next(filter(None, ids), None), error=failed
    )


_BLOCKS = frozenset({"content", "contents"})
_SURE_IDS = ("toolcallid", "tooluseid", "id", "ref")
_ALL_IDS = (*_SURE_IDS[:2], *sorted(OWN_IDS), *_SURE_IDS[2:])
_SAYS_OF_CALL = NAMES | IS_ERROR | {"type", "$type", "contenttype", "origin"}
"""What is beside an id that a tool may return as well, where it is the call's."""


def _is_around(key: str, value: JSON, call: CallIdentity) -> bool:
    """Whether what is beside a result is the call's: nothing at all, the call itself, or by its name."""
    return key in AROUND or value in NOTHING or is_of_call(fields_of(value), call)


def _holds_envelope(body: JSON, call: CallIdentity, depth: int = _DEPTH) -> bool:
    """Whether a call's whole result is inside, or only an error, below nothing but one key each."""
    if isinstance(body, str):
        body, _ = _parsed(body)
    if isinstance(body, str):
        return _in_text(body) is not None
    items = as_list(body)
    fields = fields_of(items[0] if len(items) == 1 else body)
    if not fields or depth == 0:
        return False
    if is_of_call(fields, call) or error_in(fields, CallIdentity(None, None)) is not None:
        return True
    inner = [key for key in fields if key not in AROUND]
    return len(inner) == 1 and _holds_envelope(fields[inner[0]], call, depth - 1)


def _are_texts(blocks: list[JSON]) -> bool:
    return bool(blocks) and all(
        item.get("type") == "text" and isinstance(item.get("text"), str)
        for item in map(as_dict, blocks)
    )


def _of_blocks(blocks: list[JSON], call: CallIdentity) -> ToolOutcome | None:
    """The result of one call in a list, or texts as blocks with ids and times of their own."""
    if not _are_texts(blocks):
        return _in_envelope(fields_of(blocks[0]), call) if len(blocks) == 1 else None
    of_call = any(as_dict(each).keys() > {"type", "text"} for each in blocks)
    of_call = of_call or (call.name or "").startswith("mcp__")  # Claude's name of a tool of MCP
    if not of_call and not (len(blocks) == 1 and _holds_envelope(as_dict(blocks[0])["text"], call)):
        return None
    return ToolOutcome(result=read_content(blocks).text)


def _of_llama_index(item: dict[str, JSON]) -> ToolOutcome:
    text = read_content(item.get("blocks") or item.get("content")).text
    raw = item["raw_output"]
    return ToolOutcome(
        result=raw if raw is not None else text,
        error=UNSAID if says_failed(fields_of(item)) else None,
        name=string(item["tool_name"]),
    )


def _of_callback(item: dict[str, JSON]) -> ToolOutcome | None:
    key = "output" if "output" in item else "outputs"
    if key in item and item.keys() <= {key, "kwargs", "tags", "metadata"}:
        return ToolOutcome(result=item[key])
    return None


def _is_definition(item: dict[str, JSON], name: str | None) -> bool:
    """Whether the tool itself is where its result should, as some callbacks pass it: nothing is known of that."""
    inner = as_dict(item["function"]) if "function" in item else item
    return (
        bool(name)
        and inner.get("name") == name
        and any(key in inner for key in _SCHEMAS)
        and not any(key in item for key in BODIES)
    )


def _without_id(item: dict[str, JSON], call: CallIdentity) -> ToolOutcome | None:
    """An object, of none of the known envelopes, that holds the id of its call, without that."""
    if not call.id or call.id not in map(string, item.values()):
        return None
    return ToolOutcome(result={key: value for key, value in item.items() if value != call.id})
