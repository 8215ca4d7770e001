"""Log records that name each other: chains, circles, stars, repeats, in any order and in any number of requests."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from evaluators.dialects.turns.codex import NOT_TYPED
from tests.support.dialect_spans import key_values

SECOND = 1_000_000_000
CALL_TRACE, CALL_SPAN = b"t" * 16, b"s" * 8
"""Of the model call that words are of."""
CODEX, CLAUDE, SDK = "codex_otel", "com.anthropic.claude_code.events", "app"


class Said(NamedTuple):
    """One record."""

    at: int
    """Seconds."""
    attributes: Mapping[str, str]
    scope: str = CODEX
    trace_id: bytes = b""
    span_id: bytes = b""


Shape = Callable[[int], list[Said]]
"""So many records, or as many as come closest."""


def request(records: Sequence[Said]) -> bytes:
    """One ExportLogsServiceRequest of one machine."""
    message = ExportLogsServiceRequest()
    group = message.resource_logs.add()
    group.resource.attributes.extend(key_values({"service.name": "shop", "host.name": "one"}))
    for said in records:
        scope = group.scope_logs.add()
        scope.scope.name = said.scope
        record = scope.log_records.add(
            time_unix_nano=said.at * SECOND, trace_id=said.trace_id, span_id=said.span_id
        )
        record.attributes.extend(key_values(said.attributes))
    return message.SerializeToString()


def link(at: int, session: object, helper: object) -> Said:
    """A session starts a helper's."""
    return Said(
        at,
        {
            "event.name": "codex.agent_communication",
            "kind": "spawn",
            "sender_thread_id": f"s{session}",
            "receiver_thread_id": f"s{helper}",
        },
    )


def work(at: int, session: object) -> Said:
    """A call of a tool."""
    name = {"event.name": "codex.tool_result", "call_id": f"call {at}"}
    return Said(at, name | {"conversation.id": f"s{session}"})


def prompt(at: int, session: object, text: str = "") -> Said:
    """A person's prompt."""
    return Said(
        at,
        {
            "event.name": "codex.user_prompt",
            "prompt": f"{text} {at}",
            "conversation.id": f"s{session}",
        },
    )


def claude(at: int, event: str, turn: object, **attributes: str) -> Said:
    """A record of Claude Code's, in the trace of who called it."""
    name = {"event.name": event, "session.id": "s", "prompt.id": f"p{turn}"}
    return Said(at, name | attributes, CLAUDE, b"c" * 16, b"r" * 8)


def chain(n: int) -> list[Said]:
    """Each session is started by the one before."""
    return [link(at, at, at + 1) for at in range(n)]


def circle(n: int) -> list[Said]:
    """And the first by the last."""
    return [link(at, at, (at + 1) % n) for at in range(n)]


def small_circles(n: int) -> list[Said]:
    """Of three each."""
    return [link(at, at, at - 2 if at % 3 == 2 else at + 1) for at in range(n)]


def star(n: int) -> list[Said]:
    """One session starts all, which then work."""
    half = range(n // 2)
    return [link(at, "hub", at) for at in half] + [work(at, at) for at in half]


def many_starters(n: int) -> list[Said]:
    """All start one session, which works."""
    half = range(n // 2)
    return [link(at, at, "hub") for at in half] + [work(at, "hub") for at in half]


def tower(n: int) -> list[Said]:
    """A star, whose hub is the end of a chain."""
    tail = min(n // 2, 40)
    links = [link(0, f"t{at + 1}", f"t{at}" if at else "hub") for at in range(tail)]
    return star(n - tail) + links


def work_then_prompts(n: int) -> list[Said]:
    """Helpers' work of one turn, each in a session of its own, and then the prompts of the person."""
    third = range(n // 3)
    links = [link(0, "hub", at) for at in third]
    return links + [work(at, at) for at in third] + [prompt(at, "hub") for at in third]


def prompts(n: int) -> list[Said]:
    """Of one person, each answered by one call."""
    half = range(n // 2)
    return [each for at in half for each in (prompt(at, 0), work(at, 0))]


def titles(n: int) -> list[Said]:
    """Sessions in which the program asks, beside prompts of persons."""
    third = range(n // 3)
    return [
        each
        for at in third
        for each in (
            prompt(at, f"title {at}", NOT_TYPED[0]),
            work(at, f"title {at}"),
            prompt(at, "me"),
        )
    ]


def answered(n: int) -> list[Said]:
    """Ends of one turn, over and over."""
    said = {"event.name": "codex.agent_response", "agent.type": "main", "conversation.id": "s0"}
    return [Said(at, said | {"text": f"{at}"}) for at in range(n)]


def one_call(n: int) -> list[Said]:
    """Turns of Claude's, all within the one span of who called it."""
    half = range(n // 2)
    return [
        each
        for at in half
        for each in (claude(at, "user_prompt", at, prompt="do"), claude(at, "tool_result", at))
    ]


def reports(n: int) -> list[Said]:
    """Prompts of Claude's that a helper sends, and nothing else."""
    return [claude(at, "user_prompt", at, prompt="<task-notification>") for at in range(n)]


def words(n: int) -> list[Said]:
    """Of one model call."""
    return [
        Said(at, {"event.name": "gen_ai.choice", "content": f"{at}"}, SDK, CALL_TRACE, CALL_SPAN)
        for at in range(n)
    ]


def details(n: int) -> list[Said]:
    """The same with attributes, of which each record knows another one."""
    name = {"event.name": "gen_ai.client.inference.operation.details"}
    return [
        Said(
            at,
            name | {f"gen_ai.{at}": "x", "gen_ai.request.model": "m"},
            SDK,
            CALL_TRACE,
            CALL_SPAN,
        )
        for at in range(n)
    ]


def repeats(n: int) -> list[Said]:
    """One record, over and over."""
    return [work(1, 0)] * n


SHAPES: tuple[Shape, ...] = (
    chain,
    circle,
    small_circles,
    star,
    many_starters,
    tower,
    work_then_prompts,
    prompts,
    titles,
    answered,
    one_call,
    reports,
    words,
    details,
    repeats,
)
