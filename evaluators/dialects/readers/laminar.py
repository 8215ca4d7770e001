"""Laminar: `lmnr.span.*` on functions and tools; its model calls follow the conventions.

OpenHands is traced with it: a tool's span there is named for the class of the action, `TerminalAction`.
"""

import re

from evaluators.dialects import fields
from evaluators.dialects.content.facts import Facts, Kind
from evaluators.dialects.content.tools import arguments_of
from evaluators.dialects.decoding.values import as_dict, as_list, integer, string, unwrap
from evaluators.dialects.dialect import By, Dialect, has, sample_by
from evaluators.dialects.readers import genai
from evaluators.model import JSON

_TYPE = "lmnr.span.type"
_INPUT = "lmnr.span.input"
_OUTPUT = "lmnr.span.output"
_CALL_ID = "lmnr.association.properties.metadata.tool_call_id"
_ACTION = "Action"
_OPENHANDS = "conversation"  # the outermost span of each of its agents
_OF_A_SERVER = "MCPToolAction"
"""The action of every tool of an MCP server: it does not say which."""
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SIDES = (fields.input_from(_INPUT), fields.output_from(_OUTPUT))
_by_type = By(_TYPE, kinds={"llm": "llm", "tool": "tool"})


def _kind(facts: Facts) -> Kind:
    kind = _by_type(facts)
    return "other" if kind == "tool" and facts.span.name == _OF_A_SERVER else kind


def _finish(facts: Facts) -> None:
    if facts.kind == "tool":
        get = facts.span.attributes.get
        sent = as_dict(unwrap(get(_INPUT)))
        action = as_dict(sent.get("action"))
        if string(action.get("kind")) and sent.keys() == {"action"}:
            _read_action(facts, action, as_dict(unwrap(get(_OUTPUT))))
    elif facts.kind == "other" and not (facts.span.parent_span_id or facts.span.name == _OPENHANDS):
        # The service is a script's path: the function that was asked names the agent.
        facts.agent, facts.names_agent = facts.agent or facts.span.name, True


def _read_action(facts: Facts, action: dict[str, JSON], observed: dict[str, JSON]) -> None:
    """OpenHands: a tool's arguments with the defaults of its class, and what the agent observed."""
    name = str(action["kind"]).removesuffix(_ACTION)
    facts.tool_name = _WORD.sub("_", name).lower()
    facts.arguments = {
        key: value
        for key, value in action.items()
        if key != "kind" and value is not None and value is not False
    }
    if not observed:
        return
    facts.result = _result_of(observed)
    if observed.get("is_error") is True or integer(observed.get("exit_code")):
        facts.tool_error = "error"


def _result_of(observed: dict[str, JSON]) -> JSON:
    """What the model is shown of an observation: its text, where a command ran also where and how that ended."""
    blocks = map(as_dict, as_list(observed.get("content")))
    texts = [text for text in (string(block.get("text")) for block in blocks) if text]
    about = as_dict(observed.get("metadata"))
    text = f"{about.get('prefix') or ''}{chr(10).join(texts)}{about.get('suffix') or ''}"
    if folder := string(about.get("working_dir")):
        text += f"\n[Current working directory: {folder}]"
    if (code := integer(about.get("exit_code"))) is not None:
        text += f"\n[Command finished with exit code {code}]"
    return text or observed


LAMINAR = Dialect(
    name="laminar",
    speaks=has(_TYPE),
    base=genai.read,
    kind=_kind,
    fields={
        "llm": _SIDES,
        "tool": (
            fields.tool_name(default=fields.span_name),
            fields.tool_id(_CALL_ID),
            fields.arguments(_INPUT, read=arguments_of),
            fields.result(_OUTPUT),
        ),
        "other": _SIDES,
    },
    finish=_finish,
    sample=sample_by("lmnr.span.type", call="LLM", tool="TOOL", step="DEFAULT"),
    advice="""
        no_session: Laminar.set_trace_session_id("...")
            inside the span around each turn
            source of lmnr 0.8.2, sdk/laminar.py
        content: @observe(ignore_input=False, ignore_output=False)
            these are its defaults, so something sets them
            source of lmnr 0.8.2, sdk/decorators.py
    """,
)
