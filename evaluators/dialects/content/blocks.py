"""The inside of one message: texts, tool calls and tool results in every provider's spelling."""

import re

import msgspec

from evaluators.dialects.content import hosted_tools, media
from evaluators.dialects.content.call_marks import fields_of
from evaluators.dialects.content.failures import UNSAID, says_failed, says_why
from evaluators.dialects.content.message_model import Call, Result, Role
from evaluators.dialects.decoding.reprs import looks_like_object, read_fields, read_repr
from evaluators.dialects.decoding.values import (
    as_dict,
    as_list,
    first_of,
    first_text,
    in_order,
    is_hidden,
    is_mask,
    plain_result,
    says_error,
    string,
    unwrap,
    words,
)
from evaluators.model import JSON

CONTENT = words("content parts tool_calls toolCalls blocks text function_call")
"""Keys of which a message has at least one."""

_TEXT_TYPES = words("text input_text output_text refusal text-delta summary_text prompt_text")
_CALL_TYPES = words(
    """tool_call tool-call tool_use toolCall tool-use function_call function custom_tool_call server_tool_use
    mcp_tool_use tool_call_request server_tool_call"""
)
_RESULT_TYPES = words(
    """tool_call_response tool-call-response tool_result tool-result toolResult tool-return retry-prompt
    tool_return function_call_output function_response function_result custom_tool_call_output mcp_tool_result
    tool_call_result server_tool_call_response"""
)
_BY_PROVIDER = frozenset({"server_tool_use", "server_tool_call", "mcp_tool_use"})
_OF_SERVER = "_tool_result"
"""How the types of what Anthropic's own tools answer end: `web_search_tool_result`."""
_BODIES = ("content", "parts", "blocks", "contents", "text")
_SILENT_TYPES = words(
    "reasoning thinking redacted_thinking reasoning_content reasoning_text thought compaction"
)
_TYPES = _CALL_TYPES | _RESULT_TYPES | _SILENT_TYPES | media.TYPES
_PLAIN = ("text", "content", "value", "output_text", "refusal")
"""Keys of the text of a part."""
_CALL_KEYS = frozenset({"tool_calls", "toolCalls", "function_call", "additional_kwargs"})
_KEYED_CALLS = in_order("toolUse function_call functionCall tool_use tool_call")
_KEYED_RESULTS = in_order(
    "toolResult function_response functionResponse tool_result tool_call_result"
)


ENCODED = '[{"type":'  # how a text begins that is a list of parts, JSON-encoded into one: CrewAI's, with pictures
ACTION = "\nAction Input:"
_REACT = re.compile(
    r"^Action:(?P<name>[^\n]+)\nAction Input:(?P<input>.*?)(?:\nObservation: ?(?P<result>.*))?\Z",
    re.MULTILINE | re.DOTALL,
)
"""Action, input and observation: CrewAI before 1.0, LangChain's and LlamaIndex's ReAct agents."""


class Body(msgspec.Struct, eq=False):
    texts: list[str] = []
    calls: list[Call] = []
    results: list[Result] = []
    media: list[str] = []  # a word for each part that is not text

    @property
    def text(self) -> str | None:
        """The texts as one; where nothing else is there, the words for what is not text; None without either."""
        silent = not (self.texts or self.calls or self.results)
        return joined(self.media if silent and self.media else self.texts)


def joined(texts: list[str]) -> str | None:
    """The texts of a message as one; None when there is none."""
    whole = texts[0] if len(texts) == 1 else "\n".join(t for t in texts if not is_hidden(t))
    return None if not whole or is_hidden(whole) else whole


def is_block(item: dict[str, JSON]) -> bool:
    if "role" in item:
        return False
    kind = item.get("type") or item.get("part_kind") or item.get("block_type")
    if isinstance(kind, str):
        if kind in ("function_call", "function_call_output", "function"):
            return False
        if kind in _TEXT_TYPES:
            return any(key in item for key in _PLAIN)
        return kind in _TYPES or kind.endswith(_OF_SERVER)
    if item.keys() <= {"text"} or "thought" in item:
        return True
    return any(key in item for key in (*_KEYED_CALLS, *_KEYED_RESULTS))


def read_message(item: dict[str, JSON], role: Role) -> Body:
    body = Body()
    if role == "tool":
        _read_tool_message(item, body)
        return body
    for key in _BODIES:
        if key in item and (inner := item[key]):
            _read_into(inner, body)
            break
    if not body.texts and (refusal := _refusal(item)):
        body.texts.append(refusal)
    if not body.calls and not _CALL_KEYS.isdisjoint(item):
        _read_calls(item, body)
    if role == "assistant" and body.texts:
        _read_reprs(body)
    if role == "assistant" and not body.calls and body.texts and ACTION in body.texts[-1]:
        _read_action(body.texts[-1], body)
    return body


def _read_reprs(body: Body) -> None:
    """Take apart the texts that are a response's items: `ResponseFunctionToolCall(...)`, or one as an object."""
    texts, body.texts = body.texts, []
    for text in texts:
        shown = _shown(text) if may_be_items(text) else None
        items = [as_dict(each) for each in as_list(shown) or [shown]]
        if all(_is_of_response(item) for item in items):
            _read_into([*items], body)
        elif _IN_MESSAGE.issubset(items[0]) and items[0]["role"] == "assistant":
            _read_calls(items[0], body)
            body.texts += filter(None, [string(items[0]["content"])])
        else:
            body.texts.append(text)


def _shown(text: str) -> JSON:
    return read_repr(text) or read_fields(text) or unwrap(text)


BEGINS_ITEMS = re.compile(r"\s*[\[{]|[A-Z]\w*\(|[a-z_]+='")
"""Most texts are words, and begin with none of these."""


def may_be_items(text: str) -> bool:
    return looks_like_object(text) or (text[-1:] in ("}", "'") and "call_id" in text)


_IN_MESSAGE = {"role", "content", "tool_calls"}  # of OpenAI's `ChatCompletionMessage(...)`


def _is_of_response(item: dict[str, JSON]) -> bool:
    kind = item.get("type")
    if kind in _CALL_TYPES:
        return read_call(item) is not None
    return kind in _RESULT_TYPES or (kind in ("message", "output_text") and "content" in item)


def _refusal(item: dict[str, JSON]) -> str | None:
    return string(item.get("refusal")) or string(
        as_dict(item.get("additional_kwargs")).get("refusal")
    )


def _read_action(text: str, body: Body) -> None:
    match = _REACT.search(text)
    arguments = unwrap(match["input"].strip()) if match else None
    if match is None or not isinstance(arguments, dict):
        return
    name = match["name"].strip()
    body.calls.append(Call(name=name, arguments=arguments))
    if match["result"] is not None:
        body.results.append(Result(name=name, content=match["result"]))


def read_content(value: JSON) -> Body:
    body = Body()
    _read_into(value, body)
    return body


def _read_into(value: JSON, body: Body) -> None:
    if isinstance(value, str):
        _read_text(value, body)
    elif isinstance(value, list):
        for item in as_list(value):
            if isinstance(item, dict):
                _read_block(as_dict(item), body)
            elif isinstance(item, str):
                body.texts.append(item)
    elif isinstance(value, dict):
        _read_block(as_dict(value), body)


def _read_text(text: str, body: Body) -> None:
    """A text; or blocks that were JSON-encoded once more, as OpenLLMetry's flat keys and Bedrock's are."""
    if text[:1] in ("[", '"') or text[:2] in ('{"', "{'"):
        inner = unwrap(text)
        items = as_list(inner) if isinstance(inner, list) else [inner]
        if items and all(isinstance(item, dict) and is_block(as_dict(item)) for item in items):
            _read_into(items, body)
            return
        if inner == "":
            return
    if text:
        body.texts.append(text)


def _read_block(item: dict[str, JSON], body: Body) -> None:
    if len(item) == 2 and item.get("type") == "text":  # by far the most frequent one
        text = item.get("content") or item.get("text")
        if isinstance(text, str):
            if text.startswith(ENCODED):
                _read_text(text, body)
            else:
                body.texts.append(text)
            return
    kind = item.get("type") or item.get("part_kind") or item.get("block_type")
    if kind == "tool_call" and item.keys() <= _CONVENTION:
        name = string(item.get("name"))
        if name is not None:
            arguments = read_arguments(item.get("arguments"))
            body.calls.append(Call(name=name, id=string(item.get("id")), arguments=arguments))
            return
    _read_kind(item, kind if isinstance(kind, str) else None, body)


def _read_kind(item: dict[str, JSON], kind: str | None, body: Body) -> None:
    if kind in _SILENT_TYPES or item.get("thought") is True:
        return
    if kind in _CALL_TYPES and (call := read_call(item)):
        body.calls.append(call)
    elif kind in _RESULT_TYPES or (kind is not None and kind.endswith(_OF_SERVER)):
        body.results.append(_read_result(item))
    elif kind in hosted_tools.ITEMS:
        call, result = hosted_tools.read_item(item)
        body.calls.append(call)
        body.results += [] if result is None else [result]
    elif (word := media.word_of(item, kind)) is not None:
        body.media.append(word)
    elif not _read_keyed(item, body):
        _read_plain(item, body)


def _read_keyed(item: dict[str, JSON], body: Body) -> bool:
    """Gemini's and Bedrock's blocks are known by their only key."""
    for key in _KEYED_CALLS:
        if isinstance(item.get(key), dict) and (call := read_call(as_dict(item[key]))):
            body.calls.append(call)
            return True
    for key in _KEYED_RESULTS:
        if isinstance(item.get(key), dict):
            body.results.append(_read_result(as_dict(item[key])))
            return True
    return False


def _read_plain(item: dict[str, JSON], body: Body) -> None:
    for key in _PLAIN:
        value = item.get(key)
        if isinstance(value, dict):
            value = as_dict(value).get("value") or as_dict(value).get("content")
        if isinstance(value, str) and value:
            body.texts.append(value)
            return
        if isinstance(value, list):
            _read_into(value, body)
            return


def _read_calls(item: dict[str, JSON], body: Body) -> None:
    extra = as_dict(item.get("additional_kwargs"))
    for source in (item, extra):
        calls = source.get("tool_calls") or source.get("toolCalls")
        for entry in as_list(unwrap(calls) if isinstance(calls, str) else calls):
            parsed = unwrap(entry)
            if isinstance(parsed, str):
                parsed = read_repr(parsed)
            if call := read_call(as_dict(parsed)):
                body.calls.append(call)
        if body.calls:
            return
        if call := read_call(as_dict(source.get("function_call"))):
            body.calls.append(call)
            return


_CONVENTION = frozenset({"type", "id", "name", "arguments"})


def read_call(item: dict[str, JSON]) -> Call | None:
    """One tool call in any spelling; None when it names no tool."""
    inner = item.get("function") or item.get("tool_call") or item.get("functionCall")
    inner = as_dict(inner)
    name = first_text(inner, "name") or first_text(
        item, "name", "toolName", "tool_name", "function_name", "function"
    )
    if name is None:
        return None
    arguments = first_of(inner, "arguments", "args", "input", "parameters")
    if arguments is None:
        arguments = first_of(
            item, "arguments", "args", "input", "parameters", "tool_kwargs", "tool_input", "kwargs"
        )
    if arguments is None and item.get("type") == "server_tool_call":
        arguments = _typed(item.get("server_tool_call"))
    return Call(
        name=name,
        id=first_text(
            item, "id", "call_id", "toolCallId", "tool_call_id", "toolUseId", "tool_use_id"
        )
        if item.get("type") != "function_call"
        else first_text(item, "call_id", "id"),
        arguments=read_arguments(arguments),
        by_provider=string(item.get("type")) in _BY_PROVIDER,
    )


def _typed(value: JSON) -> JSON:
    """What the conventions write of a provider's tool, without its type."""
    return {key: inner for key, inner in as_dict(value).items() if key != "type"} or None


def read_arguments(value: JSON) -> JSON:
    """Arguments as an object where they are one in whatever wrapping; "" counts as none given."""
    inner = unwrap(value)
    return None if inner == "" or is_mask(inner) else inner


def _read_result(item: dict[str, JSON]) -> Result:
    content = first_of(item, "response", "result", "output", "content", "value", "return_value")
    if content is None and "server_tool_call_response" in item:
        content = _typed(item["server_tool_call_response"])
    fields = fields_of(item)
    is_error = item.get("error") is True or says_failed(fields)
    if content is None and (why := says_why(fields)) is not None:
        is_error, content = True, None if why == UNSAID else why
    origin = as_dict(item.get("origin"))  # Haystack: the call it answers
    typed = as_dict(content)
    is_error = is_error or str(typed.get("type")).endswith("_tool_result_error")
    if typed.keys() == {"type", "value"}:
        is_error = is_error or str(typed["type"]).startswith("error")
        content = typed["value"]
    elif typed.keys() == {"error"} and "response" in item and says_error(typed["error"]):
        is_error, content = True, typed["error"]  # Gemini: the function failed
    return Result(
        id=first_text(
            item, "toolCallId", "tool_call_id", "tool_use_id", "toolUseId", "call_id", "id"
        )
        or string(origin.get("id")),
        name=first_text(item, "name", "toolName", "tool_name") or string(origin.get("tool_name")),
        content=plain_result(content),
        is_error=is_error,
    )


def _read_tool_message(item: dict[str, JSON], body: Body) -> None:
    """A message of role tool: its blocks are results, or its content is the one result."""
    call_id = first_text(item, "tool_call_id", "toolCallId", "call_id", "id")
    content = item.get("content")
    if content is None:
        content = item.get("parts") or item.get("contents") or item.get("blocks")
    inner = unwrap(content) if isinstance(content, str) and content[:1] == "[" else content
    if isinstance(inner, list | dict):
        body_inside = read_content(inner)
        # A "tool" that is a call of no id is a definition: Langfuse writes them so.
        if body_inside.results or (body_inside.calls and call_id is None):
            body.results += body_inside.results
            return
    body.results.append(
        Result(
            id=call_id,
            name=first_text(item, "name", "tool_name"),
            content=plain_result(content),
            is_error=says_failed(fields_of(item)),
        )
    )
