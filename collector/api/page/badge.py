"""What the doctor found for a service, in a line of the overview. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from collector.api.about import Row
from collector.api.page.sheet import Sheet
from collector.api.page.views import words
from evaluators.dialects.dialect import NO_SETTING


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    text: str  # what is lacking, and how many evaluators say less than they could
    setting: str | None
    """The first line of what exports it, in the agent's process; None: nothing is known that does."""


def badges(found: Row) -> Mapping[str, Badge]:
    """By service, of findings as `Findings.now` gives them; a service whose evaluators all see enough has none."""
    lacks: dict[str, dict[str, None]] = {}
    blind: dict[str, set[str]] = {}
    settings: dict[str, str] = {}
    sheet = Sheet("spanwise doctor")
    for stack in found["stacks"]:
        service = stack["service"]
        for finding in stack["findings"]:
            if not finding["stops"]:
                continue
            says = sheet.text(finding["says"]) if finding["says"] else words(finding["lack"])
            lacks.setdefault(service, {})[says] = None
            blind.setdefault(service, set()).update(finding["stops"])
            for advice in finding["advice"]:
                if advice["setting"] != NO_SETTING:
                    settings.setdefault(service, advice["setting"].partition("\n")[0])
    return {
        service: Badge(
            text=f"{next(iter(said))}{_more(len(said) - 1)}: {_blind(len(blind[service]))}",
            setting=sheet.name(settings[service]) if service in settings else None,
        )
        for service, said in lacks.items()
    }


def _more(count: int) -> str:
    return f" and {count} more" if count else ""


def _blind(count: int) -> str:
    return f"{count} evaluator{'s' if count != 1 else ''} blind"
