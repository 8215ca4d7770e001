"""OpenAI Codex: log events of a conversation, joined to calls by `enrichment.codex`.

Codex says that a command succeeded which ended with an exit code: the code is in the text of the output, under a
heading that differs with every call. Refusals by its rules are there too.
"""

import re

from evaluators.dialects import fields
from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import Content, Facts, Kind
from evaluators.dialects.decoding.values import as_dict, integer, string, unwrap
from evaluators.dialects.dialect import Dialect, Sample, kinds, scope
from evaluators.model import JSON, Rejection

_KINDS = kinds(
    llm="""codex.api_request codex.websocket_request codex.websocket_connect codex.sse_event
    codex.agent_response""",
    tool="codex.tool_decision codex.tool_result",
    agent="codex.user_prompt codex.agent_communication",
)
_HEADING = re.compile(
    r"(?:Chunk ID: .*\n)?(?:Exit code: (?P<code>-?\d+)\n)?(?:Wall time: .*\n)?"
    r"(?:Process exited with code (?P<exited>-?\d+)\n)?(?:Process running with session ID .*\n)?"
    r"(?:Original token count: \d+\n)?(?:Total output lines: \d+\n)?Output:\n"
)
"""What is above the output of a command; its chunk and its seconds differ when nothing else does."""
_REFUSED = re.compile(
    r"\bRejected\(|\brejected by (?:the )?(?:user|policy)|\bpatch rejected", re.IGNORECASE
)
_BY_USER = re.compile(r"\bby (?:the )?user\b", re.IGNORECASE)
_DOCS = "developers.openai.com/codex/config-advanced; recordings of 0.169.0"
_NO = frozenset({"denied", "abort", "timed_out"})


def _kind(facts: Facts) -> Kind:
    return _KINDS.get(str(facts.span.attributes.get("spanwise.log.event")), "other")


def _agent(name: JSON) -> str | None:
    """`/root` is Codex itself, `/root/count_lines` a helper."""
    path = string(name)
    return (
        None if path is None else path.rpartition("/")[2].replace("root", "codex", path == "/root")
    )


def _finish(facts: Facts) -> None:
    get = facts.span.attributes.get
    facts.agent = _agent(get("agent_name"))
    if facts.kind == "agent":
        facts.agent = facts.agent or "codex"
        facts.output = _answer(facts)
    elif facts.kind == "llm":
        facts.output, facts.answers_apart = _answer(facts), True
        facts.tokens = usage.read_usage_object(
            {
                "input_tokens": get("input_token_count"),
                "output_tokens": get("output_token_count"),
                "cached_tokens": get("cached_token_count") or None,
                "reasoning_tokens": get("reasoning_token_count") or None,
            }
        )
    elif facts.kind == "tool":
        _finish_tool_call(facts)


def _answer(facts: Facts) -> Content | None:
    get = facts.span.attributes.get
    text = string(get("response"))
    if text is None:
        return None
    if get("response_truncated") is True:
        return Content(text, "output", _cut=True, _value=text)
    return Content(text, "output")


def _finish_tool_call(facts: Facts) -> None:
    get = facts.span.attributes.get
    failed = get("success") in ("false", False)
    recorded = get("output")
    output = recorded if isinstance(recorded, str) else None
    facts.rejected = _rejection(facts, output or "")
    facts.unanswered = get("success") is None and facts.rejected is None
    if isinstance(facts.arguments, str):  # of a tool that takes a text, as `apply_patch`
        facts.arguments = {"input": facts.arguments}
    if output is None:
        facts.tool_error = "error" if failed else None
        return
    if failed:
        facts.tool_error = output or "error"
        return
    facts.result, code = _read_output(output)
    if code:
        facts.tool_error = f"Process exited with code {code}"


def _read_output(output: str) -> tuple[str, int | None]:
    heading = _HEADING.match(output)
    if heading is not None:
        code = heading["exited"] or heading["code"]
        printed = output[heading.end() :]
        return printed if printed.strip() else heading[0], None if code is None else int(code)
    if output.startswith('{"output"'):  # before 2026
        whole = as_dict(unwrap(output))
        code = integer(as_dict(whole.get("metadata")).get("exit_code"))
        printed = whole.get("output")
        return printed if isinstance(printed, str) else output, code
    return output, None


def _rejection(facts: Facts, output: str) -> Rejection | None:
    get = facts.span.attributes.get
    if get("success") in ("true", True):
        return None
    refused = str(get("decision")).lower() in _NO
    if refused and str(get("source")).lower() == "user":
        return "user"
    if refused or (get("success") is not None and _REFUSED.search(output)):
        return "user" if _BY_USER.search(output) else "policy"
    return None


CODEX = Dialect(
    name="codex",
    speaks=scope("codex_otel"),
    kind=_kind,
    fields={
        "llm": (fields.model("model"),),
        "tool": (
            fields.tool_name("tool_name"),
            fields.tool_id("call_id"),
            fields.arguments("arguments"),
        ),
        "agent": (fields.input_from("prompt"),),
    },
    finish=_finish,
    reads=(
        fields.row("output", "agent", "response"),
        fields.row("output", "model call", "response"),
        fields.row("result", "tool", "output"),
        fields.row("agent", "any", "agent_name"),
        fields.row("input tokens", "model call", "input_token_count"),
        fields.row("output tokens", "model call", "output_token_count"),
        fields.row("cached tokens", "model call", "cached_token_count"),
        fields.row("reasoning tokens", "model call", "reasoning_token_count"),
    ),
    scopes=("codex_otel",),
    advice="""
        no_content, no_question: config.toml: [otel] log_user_prompt = true
            exports what people type, with whatever they paste; what tools do is exported either way
            developers.openai.com/codex/config-advanced; recordings of 0.169.0
        no_content: config.toml: [otel] log_agent_responses = true
            exports final answers that the model marks as such: other servers than OpenAI's may not
            developers.openai.com/codex/config-advanced; recordings of 0.169.0
        truncated: (no setting)
            an answer above 64 KiB is exported without its end
            developers.openai.com/codex/config-advanced; recordings of 0.169.0
        no_tool_definitions: (no setting)
            Codex exports no definitions of tools
            developers.openai.com/codex/config-advanced; recordings of 0.169.0
    """,
    sample=Sample(
        scope="codex_otel.log_only",
        spans={
            "model call": {"spanwise.log.event": "codex.sse_event"},
            "tool": {"spanwise.log.event": "codex.tool_result", "tool_name": "exec_command"},
            "agent": {"spanwise.log.event": "codex.user_prompt"},
            "any": {"spanwise.log.event": "codex.tool_result", "tool_name": "exec_command"},
        },
    ),
)
