"""CrewAI under OpenLLMetry: a crew's question stands in its task, the model is sent a prompt made around it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from evaluators.dialects.facts import Facts
from evaluators.dialects.values import as_dict, as_list, python_literal, string, unwrap
from evaluators.model import JSON

_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_\-]*)\}")
"""How CrewAI marks where an input of `kickoff(inputs=...)` goes."""
_DESCRIPTION = re.compile(r"""'description': ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")


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
