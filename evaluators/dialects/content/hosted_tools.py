"""Tools that the provider runs: one item of the model's answer has the call and its result, and they have no span."""

from evaluators.dialects.content.message_model import Call, Result
from evaluators.dialects.decoding.values import as_dict, string, unwrap
from evaluators.model import JSON

_GIVEN: dict[str, tuple[str, ...]] = {
    "web_search": ("action",),
    "file_search": ("queries",),
    "code_interpreter": ("code",),
    "local_shell": ("action",),
    "shell": ("action",),
    "computer": ("action",),
    "image_generation": (),
    "mcp": ("arguments",),
}
"""OpenAI's tools, and the keys under which an item of type `<tool>_call` has the arguments."""
ITEMS = frozenset(f"{tool}_call" for tool in _GIVEN)
_RAN = {"file_search": "results", "code_interpreter": "outputs", "mcp": "output"}
"""The keys of results. What an image's generation answers is not text; shells and computers answer in a later item."""
_WHOLE = frozenset({"action", "arguments"})
"""Keys whose object is the arguments, rather than one of them."""


def read_item(item: dict[str, JSON]) -> tuple[Call, Result | None]:
    """The call in an item of a type in `ITEMS`, and its result where the item has one."""
    tool = str(item["type"]).removesuffix("_call")
    name = string(item.get("name")) or tool
    call_id = string(item.get("call_id")) or string(item.get("id"))
    given: dict[str, JSON] = {}
    for key in _GIVEN[tool]:
        value = unwrap(item.get(key))
        if key in _WHOLE:
            given |= {k: v for k, v in as_dict(value).items() if (key, k) != ("action", "type")}
        elif value is not None:
            given[key] = value
    content, error = item.get(_RAN.get(tool, "")), item.get("error")
    failed = bool(error) or item.get("status") == "failed"
    call = Call(name=name, id=call_id, arguments=given or None, by_provider=True)
    if content is None and not failed:
        return call, None
    said = error if failed and error else content
    return call, Result(id=call_id, name=name, content=said, is_error=failed)


def offered_name(item: dict[str, JSON]) -> str | None:
    """The tool that a definition without a name offers by its type, which may have a version; None: it is another's."""
    kind = string(item.get("type")) or ""
    return next((t for t in _GIVEN if t != "mcp" and (kind == t or kind.startswith(f"{t}_"))), None)
