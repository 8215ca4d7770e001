"""Claude Code's log events, and its beta spans."""

from evaluators.dialects.decoding.values import words
from evaluators.dialects.turns.place import AgentEvent, Dropped, LogAgent, Place, text

NOTIFICATION = "<task-notification>"
"""How a prompt begins that a background helper sends when it is done: no one typed it."""
_WORK = words(
    """user_prompt assistant_response api_request api_error api_refusal api_retries_exhausted
    api_request_body api_response_body tool_decision tool_result subagent_completed"""
)
_ANSWERED_HERE = words(
    """add-dir agents bug clear color config context copy cost doctor effort exit export extra-usage
    fast feedback help hooks ide keybindings login logout mcp memory mobile model output-style
    permissions plugin privacy-settings quit release-notes reload-plugins rename resume rewind
    sandbox skills stats status tasks terminal-setup theme todos upgrade usage vim"""
)
"""Commands that the program answers itself: no turn begins."""
_MAIN = ("repl_main_thread", "sdk")
"""How `query_source` begins where the main agent asks the model. The program asks too: for the session's title, for a
prompt to suggest, for a summary."""


def is_main(query_source: str) -> bool:
    """Whether a call of the model is the main agent's own; older versions do not say."""
    return not query_source or query_source.startswith(_MAIN)


def _place(event: AgentEvent) -> Place | Dropped:
    name = event.name.removeprefix("claude_code.")
    session = text(event, "session.id")
    if name not in _WORK or not session:
        return "diagnostics"
    is_prompt = name == "user_prompt"
    if is_prompt and _is_answered_here(event):
        return "diagnostics"
    is_helper = is_prompt and text(event, "prompt").lstrip().startswith(NOTIFICATION)
    return Place(
        session=session,
        turn=text(event, "prompt.id"),
        is_prompt=is_prompt and not is_helper,
        is_helper=is_helper,
        owns_trace=True,
    )


def _is_answered_here(event: AgentEvent) -> bool:
    is_builtin = text(event, "command_source") == "builtin"
    return is_builtin and text(event, "command_name") in _ANSWERED_HERE


def _place_span(event: AgentEvent) -> Place | None:
    session = text(event, "session.id")
    return Place(session=session) if session else None


CLAUDE_CODE_LOGS = LogAgent(
    name="claude_code",
    scopes=("com.anthropic.claude_code.events",),
    place=_place,
    span_scopes=("com.anthropic.claude_code.tracing",),
    place_span=_place_span,
    turn_span="claude_code.interaction",
)
