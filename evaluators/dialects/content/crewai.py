"""CrewAI's own words, as OpenInference and OpenLLMetry export them under keys of their own.

A crew's question stands in its inputs and its tasks: the model is sent a prompt made around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.decoding.reprs import read_fields
from evaluators.dialects.decoding.values import as_dict, as_list, python_literal, string, unwrap
from evaluators.model import JSON

_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_\-]*)\}")
"""How CrewAI marks where an input of `kickoff(inputs=...)` goes."""
_ROLE = re.compile(r"role='((?:[^'\\]|\\.)+)'")
_HEAD = 1_000
_DESCRIPTION = re.compile(r"""'description': ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")


# --- OpenLLMetry ------------------------------------------------------------------------------------------------------


def kickoff_question(spine: Iterable[Facts], order: Iterable[Facts]) -> str | None:
    """The crew's input: what was put in its first task's one place, else that task's description.

    Args:
        spine: The spans that wrap the work; one of them is the crew's, if there is a crew.
        order: All spans in order of start.
    """
    crew = next((f.span for f in spine if "crewai.crew.tasks" in f.span.attributes), None)
    if crew is None:
        return None
    tasks = (string(f.span.attributes.get("crewai.task.description")) for f in order)
    asked = next((task for task in tasks if task), None)
    template = _first_description(crew.attributes.get("crewai.crew.tasks"))
    if asked is None or template is None:
        return asked or template
    return _filled_in(template, asked) or asked


def _first_description(tasks: JSON) -> str | None:
    """The first task's description as it was planned, in JSON or in the repr of objects."""
    planned = as_list(unwrap(tasks))
    if planned:
        return string(as_dict(planned[0]).get("description"))
    shown = _DESCRIPTION.search(tasks) if isinstance(tasks, str) else None
    literal = as_list(python_literal(f"[{shown.group(1)}]")) if shown else []
    return string(literal[0]) if len(literal) == 1 else None


def _filled_in(template: str, text: str) -> str | None:
    """What stands in `text` at the only place of `template`."""
    pieces = _PLACE.split(template)
    if len(pieces) != 3:
        return None
    head, _, tail = pieces
    fits = text.startswith(head) and text.endswith(tail) and len(text) > len(head) + len(tail)
    return string(text[len(head) : len(text) - len(tail)].strip()) if fits else None


# --- OpenInference ----------------------------------------------------------------------------------------------------


def crew_question(attributes: Mapping[str, JSON]) -> JSON:
    """What a crew was asked: its inputs, else its only task. Newer versions state them as `input.value`."""
    inputs = as_dict(unwrap(attributes.get("crew_inputs")))
    if inputs:
        return inputs
    tasks = [as_dict(task) for task in as_list(unwrap(attributes.get("crew_tasks")))]
    return tasks[0].get("description") if len(tasks) == 1 else None


def tool_names(attributes: Mapping[str, JSON]) -> JSON:
    """The tools that the crew's agents have, by name."""
    agents = [as_dict(agent) for agent in as_list(unwrap(attributes.get("crew_agents")))]
    return [name for agent in agents for name in as_list(agent.get("tools_names"))]


def agent_role(attributes: Mapping[str, JSON]) -> str | None:
    """The role of the agent that does a task, from the repr that older versions export of it."""
    raw = string(attributes.get("input.value"))
    found = _ROLE.search(raw[:_HEAD]) if raw is not None else None
    return found.group(1) if found is not None else None


def arguments_of_use(item: dict[str, JSON]) -> JSON:
    """The arguments of CrewAI's `ToolUsage`: those of the call that it parsed from the model's text."""
    calling = unwrap(item["calling"])
    parsed = read_fields(calling) if isinstance(calling, str) else as_dict(calling)
    return as_dict(parsed.get("arguments")) or None
