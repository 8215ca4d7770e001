"""Connexity's registry of metrics, word for word: what `/config/available-metrics` lists (seed document, section 4).

A metric here is Connexity's word for one part of `conversation_quality`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tier = Literal["execution", "knowledge", "process", "delivery"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One registered metric. `anchors` say what earns 5, 4, 3, 2, 1 and 0; empty for pass or fail."""

    name: str
    display_name: str
    description: str
    tier: Tier
    default_weight: float
    anchors: tuple[str, ...] = ()
    score_type: Literal["scored", "binary"] = "scored"
    include_in_defaults: bool = True

    @property
    def rubric(self) -> str:
        """What the judge is told."""
        if not self.anchors:
            return self.description
        scale = (f"{5 - at}: {anchor}" for at, anchor in enumerate(self.anchors))
        return "\n".join((self.description, *scale))

    def listed(self) -> dict[str, str | float | bool]:
        """The metric as `GET /config/available-metrics` gives it."""
        return {
            "name": self.name,
            "display_name": self.display_name,
            "description": self.description,
            "tier": self.tier,
            "default_weight": self.default_weight,
            "score_type": self.score_type,
            "rubric": self.rubric,
            "include_in_defaults": self.include_in_defaults,
        }


METRICS: tuple[Metric, ...] = (
    Metric(
        name="tool_routing",
        display_name="Tool Routing",
        description="Correct tool names and call sequence.",
        tier="execution",
        default_weight=0.15,
        anchors=(
            "All expected tools called in correct sequence. No unnecessary calls.",
            "All critical tools called. Minor sequence deviation or one redundant call.",
            "One expected tool missed OR one wrong tool called, but core flow mostly intact.",
            "Multiple tool errors. Flow significantly impacted but partially functional.",
            "Most tool calls incorrect or missing. Only 1 of N expected tools called.",
            "No tools called when required, or entirely wrong tool set used.",
        ),
    ),
    Metric(
        name="parameter_extraction",
        display_name="Parameter Extraction",
        description="Argument values correctly extracted from conversation for tools.",
        tier="execution",
        default_weight=0.15,
        anchors=(
            "All parameters correct. Values accurately extracted from user input.",
            "All critical parameters correct. One minor parameter slightly off.",
            "One critical parameter wrong or missing, affecting tool outcome.",
            "Multiple parameter errors. Tool may have returned wrong results or failed.",
            "Most parameters fabricated or missing. Values not grounded in conversation.",
            "No parameters extracted from conversation. All values fabricated or empty.",
        ),
    ),
    Metric(
        name="result_interpretation",
        display_name="Result Interpretation",
        description="Tool output accurately reflected in agent response.",
        tier="execution",
        default_weight=0.15,
        anchors=(
            "Tool output accurately and completely reflected. Errors handled gracefully.",
            "Tool output mostly accurate. Minor omission that doesn't mislead user.",
            "One meaningful inaccuracy in conveying tool results.",
            "Significant misrepresentation of tool output.",
            "Tool output largely ignored or contradicted.",
            "Tool output completely ignored. No connection to what the tool returned.",
        ),
    ),
    Metric(
        name="grounding_fidelity",
        display_name="Grounding Fidelity",
        description="Every agent claim traceable to context, tools, or business rules.",
        tier="knowledge",
        default_weight=0.125,
        anchors=(
            "Every specific claim grounded. Appropriate hedging for uncertain info.",
            "All critical claims grounded. One minor unverifiable statement.",
            "One meaningful ungrounded claim that could mislead user.",
            "Multiple ungrounded claims. Mix of fabricated facts and invented policies.",
            "Most claims ungrounded. Agent is largely confabulating.",
            "Response is entirely fabricated with no connection to provided context.",
        ),
    ),
    Metric(
        name="instruction_compliance",
        display_name="Instruction Compliance",
        description="Agent follows explicit rules from system prompt and business rules.",
        tier="knowledge",
        default_weight=0.125,
        anchors=(
            "All instructions followed precisely. Stayed within role/scope.",
            "All critical instructions followed. One minor deviation.",
            "One meaningful instruction violated. Core functionality intact.",
            "Multiple instructions violated. Partially outside defined boundaries.",
            "Most instructions ignored. Largely operating outside its defined role.",
            "Agent completely disregards system prompt and business rules.",
        ),
    ),
    Metric(
        name="information_gathering",
        display_name="Information Gathering",
        description="Required info collected before action; previously stated info reused.",
        tier="process",
        default_weight=0.1,
        anchors=(
            "All required info collected before action. No redundant questions.",
            "All critical info collected. One redundant question or minor missed detail.",
            "One required field missing before action, or forgot one previously stated detail.",
            "Multiple gaps in info collection. Acted on incomplete data.",
            "Most required info not collected. Acted with largely incomplete data.",
            "No info gathering attempted.",
        ),
    ),
    Metric(
        name="conversation_management",
        display_name="Conversation Management",
        description="Ambiguity handling, error recovery, and conversation closure.",
        tier="process",
        default_weight=0.1,
        anchors=(
            "Ambiguity clarified. Errors acknowledged and corrected. Proper goodbye.",
            "Good management overall. One minor missed opportunity.",
            "One meaningful management failure.",
            "Multiple management failures. Conversation disjointed.",
            "Conversation poorly managed throughout.",
            "No conversation management. Agent froze or produced incoherent sequence.",
        ),
    ),
    Metric(
        name="response_delivery",
        display_name="Response Delivery",
        description="Concise, natural, TTS-friendly, non-repetitive responses.",
        tier="delivery",
        default_weight=0.1,
        anchors=(
            "All responses concise. Natural phrasing. No TTS-hostile formatting.",
            "Mostly natural and concise. One minor issue.",
            "One meaningful delivery issue (e.g. 2+ questions in one turn).",
            "Multiple delivery issues. Robotic or verbose.",
            "Pervasive delivery problems.",
            "Responses entirely unsuitable for voice delivery.",
        ),
    ),
    Metric(
        name="task_completion",
        display_name="Task Completion",
        description="Whether the agent completed the primary task from expected_outcomes.",
        tier="execution",
        default_weight=0.0,
        score_type="binary",
        include_in_defaults=False,
    ),
)
"""The eight defaults, then the one that must be asked for with a weight of its own."""
