"""What openinference-instrumentation-crewai writes under names of CrewAI's own."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evaluators.dialects.reprs import read_fields
from evaluators.dialects.values import as_dict, as_list, string, unwrap
from evaluators.model import JSON

_ROLE = re.compile(r"role='((?:[^'\\]|\\.)+)'")
_HEAD = 1_000


def question(attributes: Mapping[str, JSON]) -> JSON:
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
