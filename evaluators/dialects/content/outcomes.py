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
from evaluators.dialects.content.facts import Facts
from evaluators.dialects.content.messages import read_messages
from evaluators.dialects.content.tools import SCHEMAS
from evaluators.dialects.decoding.decode import ask
from evaluators.dialects.decoding.key_sets import Among, KeyQuestion
from evaluators.dialects.decoding.reprs import read_fields, read_repr
from evaluators.dialects.decoding.values import as_dict, as_list, string, text_of, unwrap
from evaluators.model import JSON

UNSAID = "error"  # the error of a call of which nothing more is known
_DEPTH = 8
"""Envelopes inside each other that are taken off: frameworks write two, a gateway may add one."""
_HEAD = 2_048  # where a wrapping shows itself: a result is only parsed when its first characters hint at one
_WRAPPED = (
    *(
        "tool_call_id",
        '"lc"',
        '"output"',
        '"outputs"',
        "ToolMessage",
        '"toolResult"',
        '"raw_output"',
    ),
    *('"isError', '"is_error', '"iserror', "'isError", "'is_error", "'iserror"),
)
# Words, not a pattern: a search for one word takes a twentieth of the time.
_FIRST_KEY = re.compile(r"""[\[{\s]*["'](\$?\w+)["']\s*:|(?:[A-Z]\w*\()?([A-Za-z_]\w*)=""")
"""The first key of an object, of the first object of a list, or of what Python shows of one."""
_BODIES = (
    "content",
    "contents",
    "result",
    "results",
    "response",
    "output",
    "return_value",
    "tool_output",
    "tool_response",
    "tool_result",
    "value",
    "data",
    "functionResponse",
    "function_response",
    "toolResponse",
    "toolResult",
    "tool_call_result",
    "payload",
)
_GIVEN = ("arguments", "args", "input", "parameters", "tool_input", "tool_args", "kwargs")
_CALL_IDS = frozenset(
    {"tool_call_id", "toolCallId", "tool_use_id", "toolUseId", "call_id", "callId", "tool_id"}
)
_NAMES = ("name", "tool_name", "toolName", "tool", "function_name", "functionName")
_TIMES = frozenset(
    re.findall(
        r"\w+",
        """started_at finished_at startedAt finishedAt start_time end_time startTime endTime duration duration_ms
        durationMs elapsed elapsed_ms elapsedMs execution_time execution_time_ms executionTime latency latency_ms
        latencyMs""",
    )
)
"""How long a call took: no tool returns that of itself."""
_IS_ERROR = ("isError", "is_error", "IsError", "iserror", "tool_call_error")
_ERROR_PARTS = ("error-text", "error-json")  # of the AI SDK
_PARTS = frozenset(
    {
        *_ERROR_PARTS,
        *("tool_call_response", "function_result", "functionResult", "tool_result", "tool-result"),
        *("toolresult", "function_call_output"),
    }
)
"""Types of the parts in which the convention, .NET, Anthropic, the AI SDK, Rig and OpenAI put what a tool returned."""
_STATES = ("status", "state", "outcome")
_FAILED = frozenset({"error", "failed", "failure", "ERROR", "FAILED", "FAILURE"})
_DONE = ("success", "ok", "succeeded")
_AROUND = frozenset(
    {
        *_CALL_IDS,
        *_NAMES,
        *_TIMES,
        *_IS_ERROR,
        *_STATES,
        *_DONE,
        *_GIVEN,
        *re.findall(
            r"\w+",
            """id type role kind error jsonrpc metadata meta _meta created_at createdAt timestamp time tool_kwargs
            additional_kwargs response_metadata artifact usage_metadata structuredContent structured_content index
            stream is_last is_interrupted will_continue scheduling parts attempt run_id trace_id return_direct exception
            part_kind content_type metrics origin ref runId from""",
        ),
        "$type",
    }
)
_ERRORS = ("error", "Error", "errors", "errorMessage", "error_message", "exception")
_OF_ERROR = frozenset(
    {*_ERRORS, "error_code", "errorCode", "error_type", "errorType", "stackTrace"}
)
_OF_CALL = frozenset({*_CALL_IDS, *_IS_ERROR, "origin"})
_SAYS_ERROR = frozenset({*_ERRORS, *_IS_ERROR})
_KNOWN = frozenset({*_BODIES, *_AROUND, *_OF_ERROR, "description", "text"})
_SCHEMAS = (*SCHEMAS, "args_schema", "params_json_schema")
_NO_ERROR = frozenset({"", "none", "null", "no error", "false"})


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
        if isinstance(value, str) and _FIRST_KEY.match(value) is None:
            return ToolOutcome(result=value)
    found = ToolOutcome(result=value)
    shown: JSON = None
    for _ in range(_DEPTH):
        shown, hinted = _parsed(found.result)
        inner = _opened(shown, name or found.name, call_id or found.id, hinted=hinted)
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
    failed = _error_in(as_dict(shown), name, call_id)
    if failed is not None:
        return msgspec.structs.replace(found, error=failed)
    return found


def arguments_in(value: JSON, name: str | None, call_id: str | None) -> JSON:
    """The arguments in a whole call: an object that names this very call, and holds nothing that is not of a call."""
    item = as_dict(value)
    if item.keys().isdisjoint(_GIVEN):
        return value
    given = [key for key in _GIVEN if key in item]
    if len(given) != 1 or not item.keys() <= _AROUND or not _names_call(item, name, call_id):
        return value
    return unwrap(item[given[0]])


class _Marks(KeyQuestion):
    __slots__ = ()

    def answer(self, names: AbstractSet[str]) -> tuple[str, ...]:
        return tuple(sorted(name for name in names if name.rpartition(".")[2] in _IS_ERROR))


_MARKS = _Marks()
_STATUS = Among("gen_ai.tool.status", "tool.status")


def settle(facts: Facts) -> None:
    name, attributes = facts.tool_name, facts.span.attributes
    outcome = outcome_of(facts.result, name, facts.tool_id)
    facts.result, facts.tool_id = outcome.result, facts.tool_id or outcome.id
    facts.arguments = arguments_in(facts.arguments, name, facts.tool_id)
    if facts.tool_error is None and facts.kind == "tool":
        marks, states = ask(attributes, _MARKS), ask(attributes, _STATUS)
        marked = marks and any(_is_true(attributes.get(key)) for key in marks)
        stated = states and any(attributes.get(key) in _FAILED for key in states)
        kind = string(attributes.get("error.type"))
        said = UNSAID if marked or stated or (kind and facts.result) else kind
        facts.tool_error = outcome.error or said


def _parsed(value: JSON) -> tuple[JSON, bool]:
    """What a text holds that may be a wrapping, else the text; and whether it may be a message."""
    if not isinstance(value, str):
        return value, True
    head = _FIRST_KEY.match(value)
    if head is None:
        return value, False
    key, field = head.groups()
    if field is not None:
        return (read_repr(value) or read_fields(value) or value) if field in _KNOWN else value, True
    ends = value if len(value) <= 2 * _HEAD else f"{value[:_HEAD]}\n{value[-_HEAD:]}"
    hinted = any(map(ends.__contains__, _WRAPPED))
    return unwrap(value) if hinted or key in _KNOWN else value, hinted


def _opened(
    value: JSON, name: str | None, call_id: str | None, *, hinted: bool
) -> ToolOutcome | None:
    """What is inside; None: it is what the tool returned. `hinted`: whether it may be a message."""
    if isinstance(value, str):
        return None
    item = as_dict(value)
    if _is_definition(item, name):
        return ToolOutcome()
    if "raw_output" in item and isinstance(item.get("tool_name"), str):
        return _of_llama_index(item)
    results = [r for m in read_messages(value, "output") for r in m.results] if hinted else []
    if results:
        last = results[-1]
        failed = UNSAID if last.is_error or _says_failed(item) else None
        return ToolOutcome(result=last.content, id=last.id, error=failed, name=last.name)
    if not item:
        return _of_blocks(as_list(value), name, call_id)
    return _in_envelope(item, name, call_id) or _of_callback(item)


def _in_envelope(
    item: dict[str, JSON], name: str | None, call_id: str | None
) -> ToolOutcome | None:
    if item.keys().isdisjoint(_BODIES):
        return None
    bodies = [key for key in _BODIES if key in item]
    if len(bodies) != 1 or not item.keys() - {bodies[0]} <= _AROUND:
        return None
    body = item[bodies[0]]
    content = as_list(body)
    if not (
        _names_call(item, name, call_id)
        or not _TIMES.isdisjoint(item)
        or not _CALL_IDS.isdisjoint(item)
        or any(key in item for key in (*_IS_ERROR, "jsonrpc", "origin"))
        or _are_texts(content)
        or (item.get("type") or item.get("$type")) in _PARTS
        or _is_envelope(body, name, call_id)
    ):
        return None
    are_blocks = bodies[0] == "content" and all(is_block(as_dict(each)) for each in content)
    text = read_content(content).text if content and are_blocks else None
    failed, error = (
        UNSAID if _says_failed(item) else None,
        item.get("error") or item.get("exception"),
    )
    if _is_error(error) and body in (None, "", [], {}):
        failed, body = _words(error), error
    ids = (string(item.get(key)) for key in (*sorted(_CALL_IDS), "id"))
    return ToolOutcome(
        result=body if text is None else text,
        id=next(filter(None, ids), None),
        error=failed,
    )


def _is_envelope(body: JSON, name: str | None, call_id: str | None) -> bool:
    """Whether a call's whole result is inside, or only an error, below nothing but one key each."""
    for _ in range(_DEPTH):
        items = as_list(body)
        inner = as_dict(items[0] if len(items) == 1 else body)
        if (
            not _OF_CALL.isdisjoint(inner)
            or _names_call(inner, name, call_id)
            or _error_in(inner, None, None) is not None
        ):
            return True
        if len(inner) != 1:
            return False
        body = next(iter(inner.values()))
    return False


def _names_call(item: dict[str, JSON], name: str | None, call_id: str | None) -> bool:
    if name and any(item.get(key) == name for key in _NAMES):
        return True
    return bool(call_id) and any(item.get(key) == call_id for key in ("id", *_CALL_IDS))


def _says_failed(item: dict[str, JSON]) -> bool:
    return (
        any(_is_true(item.get(key)) for key in _IS_ERROR)
        or any(item.get(key) in _FAILED for key in _STATES if isinstance(item.get(key), str))
        or any(item.get(key) is False for key in _DONE)
        or item.get("type") in _ERROR_PARTS
    )


def _is_true(value: JSON) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _are_texts(blocks: list[JSON]) -> bool:
    return bool(blocks) and all(
        item.get("type") == "text" and isinstance(item.get("text"), str)
        for item in map(as_dict, blocks)
    )


def _of_blocks(blocks: list[JSON], name: str | None, call_id: str | None) -> ToolOutcome | None:
    """The result of one call in a list, or texts as blocks with ids and times of their own."""
    if len(blocks) == 1 and not _are_texts(blocks):
        return _in_envelope(as_dict(blocks[0]), name, call_id)
    of_call = _are_texts(blocks) and any(as_dict(each).keys() > {"type", "text"} for each in blocks)
    return ToolOutcome(result=read_content(blocks).text) if of_call else None


def _of_llama_index(item: dict[str, JSON]) -> ToolOutcome:
    text = read_content(item.get("blocks") or item.get("content")).text
    raw = item["raw_output"]
    return ToolOutcome(
        result=raw if raw is not None else text,
        error=UNSAID if _says_failed(item) else None,
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
        and not any(key in item for key in _BODIES)
    )


def _error_in(item: dict[str, JSON], name: str | None, call_id: str | None) -> str | None:
    """The error that is all a result says. None: it says more, as a tool whose answer has a field for errors."""
    if item.keys().isdisjoint(_SAYS_ERROR):
        return None
    said = next((item[key] for key in _ERRORS if _is_error(item.get(key))), None)
    if any(_is_true(item.get(key)) for key in _IS_ERROR):
        return UNSAID if said is None else _words(said)
    if said is None:
        return None
    for key, value in item.items():
        says_nothing = (
            key in _OF_ERROR
            or key == "jsonrpc"
            or (key in _BODIES and value in (None, "", [], {}))
            or (key in _STATES and value in _FAILED if isinstance(value, str) else False)
            or (key in _DONE and value is False)
            or (value in (name, call_id) and isinstance(value, str))
            or (key == "id" and "jsonrpc" in item)
        )
        if not says_nothing:
            return None
    return _words(said)


_ANSWERS = ("choices", "candidates", "content", "output", "message", "messages", "parts", "text")


def answered_error(value: JSON) -> str | None:
    """The error that a provider gave in place of a model's answer: OpenAI's, Anthropic's, vLLM's, ADK's."""
    item = as_dict(value)
    if not item or any(item.get(key) for key in _ANSWERS if key != "message"):
        return None
    code = item.get("error_code") or item.get("errorCode")
    if item.get("object") == "error" or code:
        texts = map(
            string, (item.get("error_message"), item.get("errorMessage"), item.get("message"))
        )
        return next(filter(None, texts), None) or text_of(code) or UNSAID
    error = item.get("error")
    if item.get("message") or not _is_error(error):
        return None
    return _words(error) if as_dict(error) or len(item) == 1 else None


def _is_error(value: JSON) -> bool:
    """Whether a value under `error` is one: numbers measure something."""
    if isinstance(value, str):
        return value.strip().lower() not in _NO_ERROR
    return value is True or bool(as_dict(value) or as_list(value))


def _words(error: JSON) -> str:
    message = string(as_dict(error).get("message"))
    return message or (None if error is True else text_of(error)) or UNSAID
