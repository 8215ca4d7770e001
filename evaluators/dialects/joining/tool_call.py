"""A tool call while it is put together from spans and messages."""

import re
from collections.abc import Iterable

import msgspec

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.content.failures import UNSAID
from evaluators.dialects.content.message_model import Call, Result
from evaluators.dialects.content.outcomes import ToolOutcome, outcome_of
from evaluators.dialects.decoding.values import as_dict, string, text_of, unwrap
from evaluators.dialects.joining.tree import Agents
from evaluators.model import JSON, Rejection

_FAILED = ("Error: ", "\n Please fix your mistakes.")
"""`TOOL_CALL_ERROR_TEMPLATE` of langgraph.prebuilt.tool_node, the same in JS."""
_IN_WORDS = {
    "crewai": (
        "Error executing tool",
        "I encountered an error while trying to use the tool. This was the error:",
        "I encountered an error: ",
    ),
    "claude": ("<tool_use_error>",),
    "openai_agents": ("An error occurred while running the tool. Please try again.",),
}
"""How frameworks tell a model that its tool failed, where nothing else says so: CrewAI 1 (`agent_utils.py`, `en.json`),
Claude Code and its Agent SDK, and the OpenAI Agents SDK (`default_tool_error_function`). By a word of their
instrumentations' scopes."""
_SMOLAGENTS = re.compile(r"(?:Call id: .*\n)?(Observation|Error):\n")
_ADK = ("google_adk", "gcp.vertex.agent")
_REFUSED = {"user": "refused by the user", "policy": "refused by a rule"}
"""What is said of a call that was refused without a word."""
_KERNEL = ("semantic_kernel", "Microsoft.SemanticKernel")
_QUALIFIED = re.compile(r"(?:\w+-|\w*Plugin_)(?=\w+$)")
"""A function's name holds no dash; the underscore, which .NET uses with some models, only separates a `...Plugin`."""


class DraftCall(msgspec.Struct, eq=False):
    """One call; None: not known yet."""

    name: str
    id: str | None = None
    arguments: JSON = None
    result: JSON = None
    error: str | None = None
    agent: str | None = None
    facts: Facts | None = None
    requested: bool = False
    end: int = 0
    start: int = 0
    rejected: Rejection | None = None
    unanswered: bool = False
    server: str | None = None

    def same_arguments(self, call: Call) -> bool:
        """Whether both ask for the same: an absent object and an empty one are."""
        return (self.arguments or {}) == (call.arguments or {})

    def merge(self, facts: Facts) -> None:
        self.id = self.id or facts.tool_id
        if self.arguments is None:
            self.arguments = facts.arguments
        if self.result is None:
            self.result = facts.result
        self.error = self.error or span_error(facts)
        self.rejected = self.rejected or facts.rejected
        self.server = self.server or mcp_server(facts)
        was_left = facts.was_left or (self.facts is not None and self.facts.was_left)
        self.unanswered = self.result is None if was_left else self.unanswered and facts.unanswered

    def learn_id(self, call_id: str | None) -> None:
        """Take the id by which a model asked for it, if it has none: an envelope around its result is known by that."""
        if self.id is not None or call_id is None:
            return
        self.id = call_id
        if self.result is None or (isinstance(self.result, str) and call_id not in self.result):
            return
        outcome = outcome_of(self.result, self.name, call_id)
        self.result, self.error = outcome.result, self.error or call_error(outcome)

    def try_again(self, facts: Facts) -> None:
        """Take from a span of the same call what it says; the last of several tries decides how the call ended."""
        error = span_error(facts)
        if facts.span.start_time_unix_nano < self.end or (facts.result is None and error is None):
            self.merge(facts)
            return
        self.result, self.error = facts.result, error
        self.unanswered = facts.unanswered
        self.execute(facts)

    def execute(self, facts: Facts) -> None:
        span = facts.span
        self.facts, self.start, self.end = facts, span.start_time_unix_nano, span.end_time_unix_nano

    def take(self, result: Result) -> None:
        read = self.facts.read_result if self.facts is not None else None
        content, failed = read(result.content) if read is not None else (result.content, False)
        outcome = outcome_of(content, self.name, self.id)
        self.result = self.result if outcome.result is None else outcome.result
        self.unanswered = False
        said = call_error(outcome)
        text = outcome.result if isinstance(outcome.result, str) else ""
        in_words = text.startswith(_FAILED[0]) and text.endswith(_FAILED[1])
        if failed or result.is_error or in_words:
            said = said or error_text(outcome.result)
        if self.error in (None, UNSAID):
            self.error = said or (self.error and error_text(outcome.result))


def read_words(calls: Iterable[DraftCall], scopes: Iterable[str]) -> None:
    """Read what frameworks tell a model in words of their own: that a call failed, and what it returned."""
    names = " ".join(scopes)
    begin = tuple(b for word, texts in _IN_WORDS.items() if word in names for b in texts)
    reports, observes = any(word in names for word in _ADK), "smolagents" in names
    for call in calls if begin or reports or observes else ():
        result = call.result
        if observes and isinstance(result, str) and (head := _SMOLAGENTS.match(result)):
            call.result = result[head.end() :]
            call.error = call.error or (call.result if head.group(1) == "Error" else None)
        if call.error is not None:
            continue
        if begin and isinstance(result, str) and result.lstrip().startswith(begin):
            call.error = result
        elif reports:
            call.error = _reported(as_dict(unwrap(result)))


def _reported(item: dict[str, JSON]) -> str | None:
    """Why a call failed, as ADK's documentation tells tools to say it; a status among others is the answer's."""
    if item.get("status") != "error":
        return None
    others = [string(value) for key, value in item.items() if key != "status"]
    is_report = "error_message" in item or (len(others) <= 1 and all(others))
    return (string(item.get("error_message")) or next(iter(others), UNSAID)) if is_report else None


def call_of_span(facts: Facts, agents: Agents) -> DraftCall:
    call = DraftCall(
        name=facts.tool_name or "",
        id=facts.tool_id,
        arguments=facts.arguments,
        result=facts.result,
        error=span_error(facts),
        agent=agents.of(facts),
        rejected=facts.rejected,
        unanswered=facts.unanswered or (facts.result is None and facts.was_left),
        server=mcp_server(facts),
    )
    call.execute(facts)
    return call


def mcp_server(facts: Facts) -> str | None:
    """The MCP server that a span was sent to: by its name, else by its address. Other spans have addresses too."""
    attributes = facts.span.attributes
    found = string(attributes.get("mcp.server.name"))
    address = string(attributes.get("server.address"))
    if not found and address and any(name.startswith("mcp.") for name in attributes):
        return address
    return found or None


def span_error(facts: Facts) -> str | None:
    """Why the tool's span failed or the call was refused; None when neither, as when it only waits."""
    if facts.was_left:
        return None
    error = facts.error or (facts.exception if facts.result in (None, "") else None)
    if error is None and facts.tool_error is None:
        return _REFUSED[facts.rejected] if facts.rejected is not None else None
    if error is None or error == "error":
        text = facts.tool_error if facts.tool_error != "error" else None
        return text or error_text(facts.result)
    return error


def call_error(outcome: ToolOutcome) -> str | None:
    return error_text(outcome.result) if outcome.error == UNSAID else outcome.error


def error_text(result: JSON) -> str:
    """The result of a failed call as the text of its error; `true` and numbers explain nothing."""
    text = text_of(result) if isinstance(result, str | dict | list) else None
    return text or UNSAID


def uses_semantic_kernel(scopes: Iterable[str]) -> bool:
    """Whether Semantic Kernel took part in the trace: other libraries' spans then have its names as well."""
    return any(scope.startswith(_KERNEL) for scope in scopes)


def function_name(name: str) -> str:
    """A function's name without its Semantic Kernel plugin: `WeatherPlugin-get_weather` is `get_weather`."""
    return _QUALIFIED.sub("", name, count=1) if _QUALIFIED.match(name) else name
