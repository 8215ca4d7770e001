"""Messages of a conversation, in whatever shape a framework or provider writes them.

One reader for all of them, because the shapes travel: OpenAI chat and responses, Anthropic, Gemini, Bedrock, LangChain,
Vercel, the GenAI convention's parts and pydantic-ai's events all turn up under each other's attribute keys.
"""

from typing import Literal

from evaluators.dialects.content import blocks
from evaluators.dialects.content.blocks import Body
from evaluators.dialects.content.convention_messages import WHOLE
from evaluators.dialects.content.hosted_tools import ITEMS
from evaluators.dialects.content.message_model import Message, Role
from evaluators.dialects.decoding.reprs import read_fields, read_repr
from evaluators.dialects.decoding.values import as_dict, as_list, in_order, string, unwrap, words
from evaluators.model import JSON

Side = Literal["input", "output"]  # whether a value is what went into a call or what came out of it

_NAMES: dict[Role, str] = {
    "system": "system developer systemmessage system_message",
    "user": "user human humanmessage human_message",
    "assistant": "assistant ai aimessage ai_message aimessagechunk model chatbot bot tool-call",
    "tool": """tool toolmessage tool_message tool_result tool-response function functionmessage
        observation""",
}
_ROLES: dict[str, Role] = {name: role for role, names in _NAMES.items() for name in names.split()}
_DEPTH = 12
_WRAPPERS = {
    "input": in_order(
        "messages input_messages chat_history contents inputs input new_message prompt kwargs"
    ),
    "output": in_order(
        """messages choices candidates generations output_messages replies output outputs update message
        new_messages response kwargs"""
    ),
}
"""Keys under which an object holds its messages, tried in this order."""


def role_of(value: JSON) -> Role | None:
    """The role that any spelling of it means; None when it is not a role."""
    if not isinstance(value, str):
        return None
    return _ROLES.get(value) or _ROLES.get(value.rpartition(".")[2].strip("'\"> ").lower())


def read_messages(value: JSON, side: Side) -> tuple[Message, ...]:
    """All messages in `value` in order; empty when it is not a conversation. A bare text is not a message."""
    return tuple(_read(unwrap(value), side, 0))


def _read(value: JSON, side: Side, depth: int) -> list[Message]:
    if depth > _DEPTH:
        return []
    if isinstance(value, dict):
        item = as_dict(value)
        role = _plain_role(item)
        return _read_object(item, side, depth) if role is None else _one(item, role)
    if not isinstance(value, list):
        return []
    items = as_list(value)
    if _are_blocks(items):
        return _loose_blocks(items, side)
    messages: list[Message] = []
    for item in items:
        role = _plain_role(as_dict(item)) if isinstance(item, dict) and depth < _DEPTH else None
        if role is not None:
            messages += _one(as_dict(item), role)
        else:
            messages += _read(unwrap_container(item), side, depth + 1)
    return messages


def read_plain(item: JSON) -> list[Message] | None:
    """The messages in an item of a list that can be nothing but a message, whatever side it is on; else None."""
    role = _plain_role(as_dict(item)) if isinstance(item, dict) else None
    return None if role is None else _one(as_dict(item), role)


def _are_blocks(items: list[JSON]) -> bool:
    if items and isinstance(items[0], dict) and "role" in items[0]:  # nearly always
        return False
    for item in items:  # a loop: any() and all() over a generator cost three times as much
        if not isinstance(item, dict) or not blocks.is_block(as_dict(item)):
            return False
    return bool(items)


def unwrap_container(item: JSON) -> JSON:
    """`item` decoded when it is a text that holds an object; other texts become None: they are not messages."""
    if not isinstance(item, str):
        return item
    return as_dict(unwrap(item)) or as_dict(read_repr(item)) or read_fields(item) or None


def _loose_blocks(items: list[JSON], side: Side) -> list[Message]:
    """Content blocks without a message around them: one message in this side's role."""
    body = blocks.read_content(items)
    if body.results and not body.text and not body.calls:
        return [_message("tool", body)]
    return [_message("user" if side == "input" else "assistant", body)]


_BODY = blocks.CONTENT | {"contents", "refusal", "additional_kwargs", "tool_call_id", "toolCallId"}
"""Keys of which an object with a role has one where it is a message, not somebody's record."""
_META = words("role type id index status finish_reason stop_reason usage")
"""Keys of a message whose content was left out."""
_ENCLOSING = frozenset({"lc", "data", "message", "kind"})


def _plain_role(item: dict[str, JSON]) -> Role | None:
    """The role of an object that can be nothing but a message, as nearly all are; None: look closer."""
    role = item.get("role")
    if isinstance(role, str) and _ENCLOSING.isdisjoint(item) and not _BODY.isdisjoint(item):
        return _ROLES.get(role)
    return None


def _is_record(item: dict[str, JSON]) -> bool:
    """Whether an object with a role is not a message but something that an answer lists, as people with their roles."""
    return _BODY.isdisjoint(item) and not item.keys() <= _META


def _read_object(item: dict[str, JSON], side: Side, depth: int) -> list[Message]:
    if ("lc" in item and "kwargs" in item) or isinstance(item.get("data"), dict):
        return _langchain(item, side, depth)
    if isinstance(item.get("message"), dict | list) and "role" not in item:
        return _enclosed(item, side, depth)
    if item.get("kind") in ("request", "response") and "parts" in item:
        return _pydantic_ai(item)
    return _read_typed(item) or _read_wrapper(item, side, depth)


def _read_typed(item: dict[str, JSON]) -> list[Message]:
    if "source" in item and string(item.get("type")) in _AUTOGEN:
        return [_autogen(item)]
    if role := _role_in(item):
        return _one(item, role)
    if string(item.get("type")) in _ITEMS:
        return [_responses_item(item)]
    return []


_ITEMS = ITEMS | words(
    "function_call function_call_output custom_tool_call custom_tool_call_output"
)
"""The types of the responses API's items that are calls or results."""


def _role_in(item: dict[str, JSON]) -> Role | None:
    """The role an object states, by any of the keys that are used for it; "data" without content is not a message."""
    role = role_of(item.get("role"))
    if role is None and item.get("type") != "function":  # that is a tool, not its answer
        role = role_of(item.get("type"))
    if role is not None and (len(item) < 2 or _is_record(item)):
        return None
    if role is None:
        event = string(item.get("event.name")) or ""
        if event.startswith("gen_ai.") and event.endswith(".message"):
            role = role_of(event.split(".")[1])
    return role


def _enclosed(item: dict[str, JSON], side: Side, depth: int) -> list[Message]:
    """A choice: the message is one level down; its role may be left out because it is the model's."""
    inner = item["message"]
    if isinstance(inner, list):
        return _read(inner, side, depth + 1)
    message = as_dict(inner)
    if "lc" in message or role_of(message.get("role")) or role_of(message.get("type")):
        return _read_object(message, side, depth + 1)
    if blocks.CONTENT.isdisjoint(message):
        return _read_wrapper(message, side, depth + 1)
    return _one(message, "assistant" if side == "output" else "user")


def _langchain(item: dict[str, JSON], side: Side, depth: int) -> list[Message]:
    """LangChain's two serialisations: `{"type", "data"}` and constructors."""
    if "kwargs" not in item:
        if role_of(item.get("type")):
            return _one({**as_dict(item["data"]), "type": item["type"]})
        return _read_wrapper(item, side, depth)
    kwargs = as_dict(item["kwargs"])
    name = as_list(item.get("id"))[-1:]
    role = role_of(kwargs.get("type")) or role_of(name[0] if name else None)
    if role is None:
        return _read(kwargs, "output", _DEPTH - 2)
    return _one(kwargs, role)


def _pydantic_ai(item: dict[str, JSON]) -> list[Message]:
    """pydantic-ai's own messages: one request may hold system prompt, tool returns and the user's words."""
    messages: list[Message] = []
    for part in as_list(item.get("parts")):
        entry = as_dict(part)
        kind = entry.get("part_kind")
        if kind in ("system-prompt", "user-prompt"):
            messages += _one(entry, "system" if kind == "system-prompt" else "user")
        elif kind in ("tool-return", "retry-prompt"):
            messages.append(_message("tool", blocks.read_content([entry])))
    if item["kind"] == "response":
        messages.append(_message("assistant", blocks.read_content(as_list(item["parts"]))))
    return messages


_AUTOGEN: dict[JSON, Role] = {
    **dict.fromkeys(
        words("""TextMessage MultiModalMessage StopMessage ToolCallSummaryMessage
        ToolCallRequestEvent"""),
        "assistant",
    ),
    "ToolCallExecutionEvent": "tool",
    "FunctionExecutionResultMessage": "tool",
}


def _autogen(item: dict[str, JSON]) -> Message:
    """AutoGen's messages: `source` is the speaker, `type` the kind."""
    kind, content = item["type"], item.get("content")
    role = "user" if item["source"] == "user" else _AUTOGEN[kind]
    part = "tool_call" if kind == "ToolCallRequestEvent" else "tool_result"
    if kind.startswith(("ToolCallRequest", "ToolCallExecution", "FunctionExecution")):
        content = [{**as_dict(entry), "type": part} for entry in as_list(content)]
    return _message(role, blocks.read_content(content))


def _responses_item(item: dict[str, JSON]) -> Message:
    body = blocks.read_content([item])
    return _message("tool" if body.results and not body.calls else "assistant", body)


def _read_wrapper(item: dict[str, JSON], side: Side, depth: int) -> list[Message]:
    for key in _WRAPPERS[side]:
        inner = item.get(key)
        if isinstance(inner, str) and key not in ("input", "prompt"):
            inner = unwrap_container(inner)
        if not isinstance(inner, dict | list):
            continue
        messages = _read(inner, side, depth + 1)
        if messages:
            return _system_beside(item) + messages
    if side == "output" and (
        _has_block(item.get("parts")) or isinstance(item.get("tool_calls"), list)
    ):
        return _one(item, "assistant")
    if side == "output" and isinstance(content := item.get("content"), dict | list):
        return _read(content, side, depth + 1) or (
            _one(item, "assistant") if _has_block(content) else []
        )
    if isinstance(item.get("input"), str) and ("model" in item or "instructions" in item):
        return [*_system_beside(item), Message(role="user", text=string(item["input"]))]
    return []


def _has_block(content: JSON) -> bool:
    items = as_list(content) if isinstance(content, list) else [content]
    return any(isinstance(each, str) or blocks.is_block(as_dict(each)) for each in items if each)


def _system_beside(item: dict[str, JSON]) -> list[Message]:
    for key in ("system", "system_instruction", "systemInstruction", "instructions"):
        if key in item:
            text = blocks.read_content(item[key]).text
            return [Message(role="system", text=text)] if text else []
    config = as_dict(item.get("config"))
    return _system_beside(config) if config else []


def _one(item: dict[str, JSON], role: Role | None = None) -> list[Message]:
    role = role or role_of(item.get("role")) or role_of(item.get("type")) or "user"
    body = blocks.read_message(item, role)
    if role == "user":
        if body.texts and body.texts[0].startswith(WHOLE):
            nested = _read(unwrap(body.text), "input", _DEPTH - 2)
            if nested:
                return nested
        if body.results and not body.text:
            role = "tool"
    return [_message(role, body, string(item.get("name")))]


def _message(role: Role, body: Body, name: str | None = None) -> Message:
    calls, results = tuple(body.calls), tuple(body.results)
    return Message(role=role, text=body.text, calls=calls, results=results, name=name)
