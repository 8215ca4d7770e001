"""Connexity's metric registry: nine criteria for a whole conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tier = Literal["execution", "knowledge", "process", "delivery"]
LABELS = ("critical_fail", "fail", "poor", "acceptable", "good", "excellent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One of the document's metrics. `rubric` gives the judge an anchor per score, best first."""

    name: str
    display_name: str
    description: str
    tier: Tier
    default_weight: float
    rubric: str
    is_binary: bool = False
    include_in_defaults: bool = True

    @property
    def score_type(self) -> Literal["scored", "binary"]:
        """As the listing calls it."""
        return "binary" if self.is_binary else "scored"


CRITERIA: tuple[Criterion, ...] = (
    Criterion(
        name="tool_routing",
        display_name="Tool Routing",
        description="Correct tool names and call sequence.",
        tier="execution",
        default_weight=0.15,
        rubric=(
            "5: All expected tools called in correct sequence. No unnecessary calls.\n"
            "4: All critical tools called. Minor sequence deviation or one redundant call.\n"
            "3: One expected tool missed OR one wrong tool called, but core flow mostly intact.\n"
            "2: Multiple tool errors. Flow significantly impacted but partially functional.\n"
            "1: Most tool calls incorrect or missing. Only 1 of N expected tools called.\n"
            "0: No tools called when required, or entirely wrong tool set used."
        ),
    ),
    Criterion(
        name="parameter_extraction",
        display_name="Parameter Extraction",
        description="Argument values correctly extracted from conversation for tools.",
        tier="execution",
        default_weight=0.15,
        rubric=(
            "5: All parameters correct. Values accurately extracted from user input.\n"
            "4: All critical parameters correct. One minor parameter slightly off.\n"
            "3: One critical parameter wrong or missing, affecting tool outcome.\n"
            "2: Multiple parameter errors. Tool may have returned wrong results or failed.\n"
            "1: Most parameters fabricated or missing. Values not grounded in conversation.\n"
            "0: No parameters extracted from conversation. All values fabricated or empty."
        ),
    ),
    Criterion(
        name="result_interpretation",
        display_name="Result Interpretation",
        description="Tool output accurately reflected in agent response.",
        tier="execution",
        default_weight=0.15,
        rubric=(
            "5: Tool output accurately and completely reflected. Errors handled gracefully.\n"
            "4: Tool output mostly accurate. Minor omission that doesn't mislead user.\n"
            "3: One meaningful inaccuracy in conveying tool results.\n"
            "2: Significant misrepresentation of tool output.\n"
            "1: Tool output largely ignored or contradicted.\n"
            "0: Tool output completely ignored. No connection to what the tool returned."
        ),
    ),
    Criterion(
        name="grounding_fidelity",
        display_name="Grounding Fidelity",
        description="Every agent claim traceable to context, tools, or business rules.",
        tier="knowledge",
        default_weight=0.125,
        rubric=(
            "5: Every specific claim grounded. Appropriate hedging for uncertain info.\n"
            "4: All critical claims grounded. One minor unverifiable statement.\n"
            "3: One meaningful ungrounded claim that could mislead user.\n"
            "2: Multiple ungrounded claims. Mix of fabricated facts and invented policies.\n"
            "1: Most claims ungrounded. Agent is largely confabulating.\n"
            "0: Response is entirely fabricated with no connection to provided context."
        ),
    ),
    Criterion(
        name="instruction_compliance",
        display_name="Instruction Compliance",
        description="Agent follows explicit rules from system prompt and business rules.",
        tier="knowledge",
        default_weight=0.125,
        rubric=(
            "5: All instructions followed precisely. Stayed within role/scope.\n"
            "4: All critical instructions followed. One minor deviation.\n"
            "3: One meaningful instruction violated. Core functionality intact.\n"
            "2: Multiple instructions violated. Partially outside defined boundaries.\n"
            "1: Most instructions ignored. Largely operating outside its defined role.\n"
            "0: Agent completely disregards system prompt and business rules."
        ),
    ),
    Criterion(
        name="information_gathering",
        display_name="Information Gathering",
        description="Required info collected before action; previously stated info reused.",
        tier="process",
        default_weight=0.10,
        rubric=(
            "5: All required info collected before action. No redundant questions.\n"
            "4: All critical info collected. One redundant question or minor missed detail.\n"
            "3: One required field missing before action, or forgot one previously stated detail.\n"
            "2: Multiple gaps in info collection. Acted on incomplete data.\n"
            "1: Most required info not collected. Acted with largely incomplete data.\n"
            "0: No info gathering attempted."
        ),
    ),
    Criterion(
        name="conversation_management",
        display_name="Conversation Management",
        description="Ambiguity handling, error recovery, and conversation closure.",
        tier="process",
        default_weight=0.10,
        rubric=(
            "5: Ambiguity clarified. Errors acknowledged and corrected. Proper goodbye.\n"
            "4: Good management overall. One minor missed opportunity.\n"
            "3: One meaningful management failure.\n"
            "2: Multiple management failures. Conversation disjointed.\n"
            "1: Conversation poorly managed throughout.\n"
            "0: No conversation management. Agent froze or produced incoherent sequence."
        ),
    ),
    Criterion(
        name="response_delivery",
        display_name="Response Delivery",
        description="Concise, natural, TTS-friendly, non-repetitive responses.",
        tier="delivery",
        default_weight=0.10,
        rubric=(
            "5: All responses concise. Natural phrasing. No TTS-hostile formatting.\n"
            "4: Mostly natural and concise. One minor issue.\n"
            "3: One meaningful delivery issue (e.g. 2+ questions in one turn).\n"
            "2: Multiple delivery issues. Robotic or verbose.\n"
            "1: Pervasive delivery problems.\n"
            "0: Responses entirely unsuitable for voice delivery."
        ),
    ),
    Criterion(
        name="task_completion",
        display_name="Task Completion",
        description="Whether the agent completed the primary task from expected_outcomes.",
        tier="execution",
        default_weight=0.0,
        rubric="Pass: the primary task was completed.\nFail: it was not.",
        is_binary=True,
        include_in_defaults=False,
    ),
)

BY_NAME = {criterion.name: criterion for criterion in CRITERIA}


def available_metrics() -> dict[str, object]:
    """The document's listing, `GET /config/available-metrics`."""
    data = [
        {
            "name": each.name,
            "display_name": each.display_name,
            "description": each.description,
            "tier": each.tier,
            "default_weight": each.default_weight,
            "score_type": each.score_type,
            "rubric": each.rubric,
            "include_in_defaults": each.include_in_defaults,
        }
        for each in CRITERIA
    ]
    return {"data": data, "count": len(data)}
