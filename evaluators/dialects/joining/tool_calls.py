"""The tool calls of a trace: those that left a span, and those only seen in messages, each once."""

import re
from collections import deque
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.content.names import clean_name
from evaluators.dialects.decoding.values import as_dict
from evaluators.dialects.joining.calls_in_messages import add_calls_in_answers, add_results
from evaluators.dialects.joining.calls_in_spans import (
    add_calls_in_states,
    add_hand_written,
    add_traced,
    name_classes,
)
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.texts import cap, cap_json
from evaluators.dialects.joining.tool_call import (
    DraftCall,
    call_of_span,
    function_name,
    read_words,
    uses_semantic_kernel,
)
from evaluators.dialects.joining.tree import Agents, Tree
from evaluators.model import ToolCall

PSEUDO = frozenset({"final_answer", "finish", "final_result", "(merged tools)", "(merged)"})
"""Names under which smolagents, dspy and pydantic-ai let a model answer and ADK sums up parallel calls: no tools."""
_SERVER = 2  # a span's kind
_BESIDE = 16  # calls before one that may be the same
_HANDOFF = re.compile(r"(?:transfer|hand_?off|delegate)(?:_back|_work)?_to_?_?(.*)", re.IGNORECASE)


def find_tool_calls(
    tree: Tree, exchanges: Sequence[Exchange], agents: Agents
) -> tuple[ToolCall, ...]:
    """Every call in order of start; one only seen in messages is at the end of the model call that asked for it."""
    calls = _from_spans(tree, agents, exchanges)
    kernel = uses_semantic_kernel(tree.scopes)
    if kernel:
        for call in calls:
            call.name = function_name(call.name)
    add_calls_in_states(calls, tree, exchanges, agents)
    name_classes(calls, exchanges)
    add_calls_in_answers(calls, exchanges, agents, kernel=kernel)
    add_traced(calls, tree, exchanges, agents)
    add_results(calls, tree, exchanges)
    add_hand_written(calls, tree)
    read_words(calls, tree.scopes)
    agent_names = frozenset(map(_letters, agents.names))
    tools = [c for c in calls if c.name not in PSEUDO and not _is_handoff(c, agent_names)]
    tools.sort(key=_place)
    return tuple(_finish(call) for call in tools)


def _from_spans(tree: Tree, agents: Agents, exchanges: Sequence[Exchange]) -> list[DraftCall]:
    by_span: dict[str, DraftCall] = {}
    by_id: dict[str, DraftCall] = {}
    paused: dict[str, DraftCall] = {}
    newest: deque[DraftCall] = deque(maxlen=_BESIDE if len(tree.scopes) > 1 else 0)
    for facts in tree.order:
        if facts.kind != "tool" or not (facts.tool_name or facts.tool_id):
            continue
        if is_servers(tree, facts):
            continue
        same = _same_call_around(tree, facts, by_span)
        same = same or next((call for call in newest if _is_beside(call, facts)), None)
        resumed = paused.pop(facts.tool_id or "", None)
        if resumed is not None and resumed.name == facts.tool_name:
            resumed.execute(facts)
            same = resumed
        if same is not None:
            same.merge(facts)
            by_span[facts.span.span_id] = same
        elif (tried := _tried_before(by_id, facts, exchanges)) is not None:
            tried.try_again(facts)
            by_span[facts.span.span_id] = tried
        elif facts.tool_name:
            by_span[facts.span.span_id] = call = call_of_span(facts, agents)
            newest.appendleft(call)
            if call.id:
                by_id[call.id] = call
            if facts.pauses and call.id:
                paused[call.id] = call
    return list({id(call): call for call in by_span.values()}.values())


def _tried_before(
    by_id: dict[str, DraftCall], facts: Facts, exchanges: Sequence[Exchange]
) -> DraftCall | None:
    """The call of the same id, which a gateway tried again or a plug-in recorded once more.

    Some servers give the calls of every answer the same ids: then an id that was asked for twice is of two calls.
    """
    call = by_id.get(facts.tool_id or "")
    if call is None or facts.tool_name not in (None, call.name) or _differ(call, facts):
        return None
    if call.arguments is facts.arguments is None and None not in (call.result, facts.result):
        return None  # two results, and nothing that says that they are of one call
    asking = sum(any(c.id == call.id for m in e.messages_out for c in m.calls) for e in exchanges)
    return call if asking < 2 else None


def is_servers(tree: Tree, facts: Facts) -> bool:
    """Whether it is an MCP server's answer to a request of another trace: around it are at most servers' spans."""
    span = facts.span
    if span.kind != _SERVER or "mcp.method.name" not in span.attributes:
        return False
    return all(around.span.kind == _SERVER for around in tree.ancestors(facts))


def _same_call_around(tree: Tree, facts: Facts, by_span: dict[str, DraftCall]) -> DraftCall | None:
    """The call this span records a second time: a tool span of the same name (and id) right around it."""
    parent = tree.parent(facts)
    if parent is None or parent.kind in ("llm", "agent"):
        return None
    for ancestor in tree.ancestors(facts):
        if ancestor.kind in ("llm", "agent"):
            return None
        if ancestor.kind == "tool":
            call = by_span.get(ancestor.span.span_id)
            return call if call is not None and _is_same(tree, call, facts) else None
    return None


def _is_same(tree: Tree, call: DraftCall, facts: Facts) -> bool:
    """Whether a span inside a call's is that call: by id, else as what its MCP client sends, else by what is known."""
    if call.id and facts.tool_id:
        return call.id == facts.tool_id and facts.tool_name in (None, call.name)
    if _is_sent_to_server(facts):
        return _letters(call.name).endswith(_letters(facts.tool_name or "")) or _is_only(
            tree, facts
        )
    return facts.tool_name == call.name and not _differ(call, facts)


def _is_sent_to_server(facts: Facts) -> bool:
    return facts.span.attributes.get("mcp.method.name") == "tools/call"


def _is_only(tree: Tree, facts: Facts) -> bool:
    """Whether the span around it sends nothing else to a server: a tool of the framework's own may send several."""
    around = tree.parent(facts)
    return around is None or sum(map(_is_sent_to_server, tree.children(around))) == 1


def _differ(call: DraftCall, facts: Facts) -> bool:
    """Whether arguments tell two calls apart. One layer may know fewer of them, but then of the same result."""
    one, two = call.arguments, facts.arguments
    if not isinstance(one, dict) or not isinstance(two, dict) or one == two:
        return False
    if not (one.items() <= two.items() or two.items() <= one.items()):
        return True
    return None not in (call.result, facts.result) and call.result != facts.result


def _is_beside(call: DraftCall, facts: Facts) -> bool:
    """Whether another instrumentation recorded the same call beside it: within its time, by id, else by arguments."""
    if call.facts is None or call.facts.span.scope == facts.span.scope:
        return False
    if call.name != facts.tool_name or not call.start <= facts.span.start_time_unix_nano < call.end:
        return False
    if call.id and facts.tool_id:
        return call.id == facts.tool_id
    return call.arguments is not None and call.arguments == facts.arguments


def _is_handoff(call: DraftCall, agent_names: AbstractSet[str]) -> bool:
    """A hand-over to another agent of this trace. A tool merely called so (`transfer_to_human`) stays a tool."""
    match = _HANDOFF.fullmatch(call.name)
    if match is None:
        return False
    target = _letters(match.group(1))
    if target in agent_names:
        return True
    named = [_letters(str(value)) for value in as_dict(call.arguments).values()]
    return target in ("agent", "") and any(name in agent_names for name in named)


def _letters(name: str) -> str:
    return name.lower() if name.isalnum() else re.sub(r"\W|_", "", name).lower()


def _place(call: DraftCall) -> tuple[int, bool, int, str]:
    """By start; of equal ones, as JavaScript's whole milliseconds make them, that which ended first comes first."""
    span_id = call.facts.span.span_id if call.facts is not None else ""
    return call.start, call.facts is None, call.end, span_id


def _finish(call: DraftCall) -> ToolCall:
    return ToolCall(
        name=clean_name(call.name),
        id=call.id,
        arguments=cap_json(call.arguments),
        result=cap_json(call.result),
        error=cap(call.error),
        agent=call.agent,
        span_id=call.facts.span.span_id if call.facts is not None else None,
        start_time_unix_nano=call.start,
        end_time_unix_nano=call.end or call.start,
        rejected=call.rejected,
        unanswered=call.unanswered,
        server=call.server and cap(call.server),
    )
