"""Facts of spans -> the normalised trace. The rules all dialects share are called from here, one file per concern."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import msgspec

from evaluators.dialects.content.endings import raised
from evaluators.dialects.content.facts import NO_TOKENS, PLAIN, Facts
from evaluators.dialects.content.names import clean, clean_name
from evaluators.dialects.content.sessions import Keys, find_id, find_values, task_success
from evaluators.dialects.content.tools import read_definitions, tools_beside
from evaluators.dialects.content.usage import CallTokens, without_written, written_in
from evaluators.dialects.decoding.decode import all_names
from evaluators.dialects.decoding.values import string
from evaluators.dialects.joining.agent_steps import find_agent_steps
from evaluators.dialects.joining.cancelled import ends_cancelled, mark_cancelled
from evaluators.dialects.joining.hidden_answer import hides_answer, masks_answer
from evaluators.dialects.joining.model_calls import Exchange, find_exchanges
from evaluators.dialects.joining.system_prompt import find_system
from evaluators.dialects.joining.texts import cap, find_said, is_cut
from evaluators.dialects.joining.tool_call import function_name, uses_semantic_kernel
from evaluators.dialects.joining.tool_calls import find_tool_calls, is_servers
from evaluators.dialects.joining.tree import Agents, Tree
from evaluators.digest import trace_digest
from evaluators.model import Closed, Gap, ModelCall, Span, Status, Tokens, ToolDefinition, Trace
from evaluators.prices import cost


def read_own_counts(tree: Tree) -> None:
    """Give each model call of such a loop its own counts: the difference to the one before it under the same parent."""
    for parent in {
        f.span.parent_span_id: tree.parent(f) for f in tree.order if f.counts_on
    }.values():
        if parent is not None:
            _take_apart(tree.children(parent))


def _take_apart(steps: list[Facts]) -> None:
    """`steps` are in order of start. A call goes on from the one before it only after a tool of the loop ran."""
    before: Tokens | None = None
    went_on = False
    for facts in steps:
        if facts.counts_on:
            went_on = True
        elif facts.kind == "llm" and facts.tokens is not NO_TOKENS:
            so_far = facts.tokens
            if before is not None and went_on and _goes_on(before, so_far):
                facts.tokens = _difference(before, so_far)
            before, went_on = so_far, False


def _goes_on(before: Tokens, so_far: Tokens) -> bool:
    return (so_far.input or 0) >= (before.input or 0) and (so_far.output or 0) >= (
        before.output or 0
    )


def _difference(before: Tokens, so_far: Tokens) -> Tokens:
    own = {
        name: count - earlier
        for name in Tokens.__struct_fields__
        if (count := getattr(so_far, name)) is not None
        and (earlier := getattr(before, name)) is not None
        and count >= earlier
    }
    return msgspec.structs.replace(so_far, **own)


def assemble(
    order: Sequence[Facts],
    *,
    closed: Closed,
    keys: Keys,
    broken: bool,
    records: Sequence[str] = (),
) -> Trace:
    """The trace of these facts, which are in order of (start, span id).

    Args:
        order: At least one span's facts.
        closed: Why the trace closed.
        keys: The user's own attribute keys.
        broken: Whether spans were lost because they could not be read.
        records: Ids of the log records whose words the spans have.
    """
    tree = Tree(order)
    first = [f.span for f in order]
    if tree.root is not None:
        first.insert(0, tree.root.span)
    names = all_names(first)
    mark_cancelled(tree, names)
    read_own_counts(tree)
    exchanges = find_exchanges(tree)
    agents = Agents(tree)
    session = find_id(first, "session", keys, names) or _session_in_payload(tree)
    user = find_id(first, "user", keys, names)
    task = find_id(first, "task", keys, names)
    service = _service(first)
    tool_calls = find_tool_calls(tree, exchanges, agents)
    offered = _tools_offered(tree, exchanges)
    steps = find_agent_steps(tree, exchanges, agents)
    question, answer, turns = find_said(tree, exchanges, steps)
    truncated = broken or _any_cut(order) or is_cut(question) or is_cut(answer)
    status, error = _status(tree, exchanges, answer)
    is_unseen = answer is None and (
        question is None
        or hides_answer(exchanges, tool_calls, steps, status)
        or masks_answer(tree, exchanges)
    )
    gaps: dict[Gap, bool] = {
        "no_root": tree.root_kind == "missing",
        "no_session": session is None,
        "no_content": is_unseen,
        "no_tool_definitions": not offered and bool(tool_calls or exchanges),
        "truncated": truncated,
    }
    trace_id = order[0].span.trace_id
    is_part = _is_step(tree) or (not (exchanges or tool_calls or steps) and _is_servers(tree))
    return Trace(
        trace_id=trace_id,
        service=service,
        agent=agents.outermost or service,
        agent_version=_version(first, names),
        agents=agents.names,
        session_id=clean(session[0]) if session else trace_id,
        session_source=session[1] if session else "trace",
        user_id=clean(user[0]) if user else None,
        attributes=find_values(first, keys) if keys.filter else {},
        task_id=clean(task[0]) if task else None,
        task_success=task_success(first, names),
        system=cap(find_system(tree, exchanges)),
        input=cap(question),
        output=cap(answer),
        tokens=Tokens() if is_part else _sum_tokens(tree, exchanges),
        cost_usd=None if is_part else _sum_cost(exchanges),
        is_part=is_part,
        models=tuple(dict.fromkeys(clean_name(e.model) for e in exchanges if e.model)),
        tools_offered=offered,
        tool_calls=tool_calls,
        model_calls=tuple(
            _model_call(exchange, agents, is_last=exchange is exchanges[-1])
            for exchange in exchanges
        ),
        steps=steps,
        turns=turns,
        status=status,
        error=cap(error),
        root=tree.root_kind,
        root_span_id=tree.root.span.span_id if tree.root else None,
        closed=closed,
        dialects=tuple(sorted({f.dialect for f in order} - {PLAIN})),
        spans=len(order),
        truncated=truncated,
        gaps=tuple(gap for gap, is_there in gaps.items() if is_there),
        start_time_unix_nano=order[0].span.start_time_unix_nano,
        end_time_unix_nano=max([f.span.end_time_unix_nano for f in order]),
        digest=trace_digest([f.span.span_id for f in order], records),
    )


def _session_in_payload(tree: Tree) -> tuple[str, str] | None:
    return next(((f.session, f.dialect) for f in tree.order if f.session), None)


def _is_step(tree: Tree) -> bool:
    outer = [facts for facts in tree.order if tree.parent(facts) is None]
    return bool(outer) and all(facts.is_step for facts in outer)  # a ring of parents has none


def _is_servers(tree: Tree) -> bool:
    return any(is_servers(tree, facts) for facts in tree.order)


def _service(spans: Sequence[Span]) -> str:
    for span in spans:
        if name := string(span.resource.get("service.name")):
            return clean_name(name)
    return "unknown_service"


def _version(spans: Sequence[Span], names: AbstractSet[str]) -> str | None:
    for span in spans if "gen_ai.agent.version" in names else ():
        if version := string(span.attributes.get("gen_ai.agent.version")):
            return clean_name(version)
    resources = {id(span.resource): span.resource for span in spans}.values()  # most spans have one
    versions = (string(resource.get("service.version")) for resource in resources)
    return next((clean_name(version) for version in versions if version), None)


def _any_cut(order: Iterable[Facts]) -> bool:
    for facts in order:
        if facts.span.dropped_attributes_count:
            return True
        if (sent := facts.input) is not None and sent.cut:
            return True
        if (received := facts.output) is not None and received.cut:
            return True
    return False


def _status(
    tree: Tree, exchanges: Sequence[Exchange], answer: str | None
) -> tuple[Status, str | None]:
    """The root's status; an error that ended the work counts even where the root hides it (openai-agents).

    A pause inside ends what is around it without an error of its own: that states no type.
    """
    status = tree.root.span.status if tree.root else "unset"
    for facts in tree.spine:
        if facts.is_cancelled:
            return "cancelled", None
        if (error := facts.error) and (raised(facts.span) or not _is_paused(tree)):
            return "error", error
    last = exchanges[-1] if exchanges else None
    if last is not None and answer is None and last.error:
        return "error", last.error
    if last is not None and last.ending == "cancelled" and answer in (None, last.text):
        return "cancelled", None
    if answer is None and ends_cancelled(tree):
        return "cancelled", None
    return ("unset" if status == "error" and _is_paused(tree) else status), None


def _is_paused(tree: Tree) -> bool:
    return any(facts.pauses for facts in tree.order)


# --- sums over the trace ---------------------------------------------------------------------------------------------


def _sum_tokens(tree: Tree, exchanges: Sequence[Exchange]) -> Tokens:
    """Over the model calls, each once; where none has counts, the sum an outer span states."""
    counted = [e.tokens for e in exchanges if e.tokens is not NO_TOKENS]
    if not counted:
        stated = [f for f in tree.order if f.aggregate is not NO_TOKENS]
        outer = [
            f for f in stated if not any(a.aggregate is not NO_TOKENS for a in tree.ancestors(f))
        ]
        counted = [f.aggregate for f in outer]
    return Tokens(**{k: _sum([getattr(t, k) for t in counted]) for k in Tokens.__struct_fields__})


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _sum_cost(exchanges: Sequence[Exchange]) -> float | None:
    """USD over all calls; an exported cost wins over a computed one. None when a counted call has no known price."""
    total, known = 0.0, False
    for exchange in exchanges:
        price = exchange.cost
        if price is None and (tokens := exchange.tokens) is not NO_TOKENS:
            price = cost(exchange.model, tokens, written_in(tokens))
            if price is None:
                return None
        if price is not None:
            total, known = total + price, True
    return round(total, 12) if known else None


def _tools_offered(tree: Tree, exchanges: Sequence[Exchange]) -> tuple[ToolDefinition, ...]:
    """Every tool once, by name, with the fullest definition there is, in order of appearance."""
    kernel = uses_semantic_kernel(tree.scopes)
    found: dict[str, ToolDefinition] = {}
    seen: set[str] = set()
    for span in tree.order:
        if span.definitions is None and not span.request_tools:
            continue
        for definition in _definitions(span, seen):
            if kernel:
                definition = replace(definition, name=function_name(definition.name))  # noqa: PLW2901
            if (name := clean_name(definition.name)) != definition.name:
                definition = replace(definition, name=name)  # noqa: PLW2901
            known = found.get(definition.name)
            if known is None or (known.parameters is None and definition.parameters is not None):
                found[definition.name] = definition
    for name in _run_by_provider(exchanges) if found else ():
        found.setdefault(name, ToolDefinition(name=name))
    return tuple(found.values())


def _run_by_provider(exchanges: Sequence[Exchange]) -> Iterable[str]:
    for exchange in exchanges:
        for message in exchange.messages_out:
            yield from (call.name for call in message.calls if call.by_provider)


def _definitions(facts: Facts, seen: set[str]) -> tuple[ToolDefinition, ...]:
    if facts.definitions is not None:
        raw = facts.definitions.raw
        if isinstance(raw, str):
            if raw in seen:  # the same list is repeated in every call
                return ()
            seen.add(raw)
        return read_definitions(facts.definitions.value)
    if facts.request_tools and facts.input is not None:
        return read_definitions(tools_beside(facts.input.value))
    return ()


def _model_call(exchange: Exchange, agents: Agents, *, is_last: bool) -> ModelCall:
    leaf, tokens = exchange.layers[0], exchange.tokens
    return ModelCall(
        span_id=leaf.span.span_id,
        model=clean_name(exchange.model) if exchange.model else exchange.model,
        agent=agents.of_first(exchange.layers),
        output=cap(exchange.text),
        error=cap(exchange.error),
        tokens=without_written(tokens) if isinstance(tokens, CallTokens) else tokens,
        start_time_unix_nano=exchange.start,
        end_time_unix_nano=exchange.end,
        ending=exchange.ending if is_last else None,
    )
