"""A conversation's verdict from criteria, weights and a judge's scores (Connexity), and the registry of its criteria.

A block that breaks its schema fails the verdict: it has no score then, where the reference reports 0.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evaluators.matching.json_values import list_of, object_of
from evaluators.model import JSON

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


_LISTED = (
    *("name", "display_name", "description", "tier", "default_weight"),
    *("score_type", "rubric", "include_in_defaults"),
)


def available_metrics() -> dict[str, object]:
    """The document's listing, `GET /config/available-metrics`."""
    data = [{name: getattr(each, name) for name in _LISTED} for each in CRITERIA]
    return {"data": data, "count": len(data)}


PASS_THRESHOLD = 75.0  # points of 100 from which on a conversation passes (Connexity's default)


class VerdictError(ValueError):
    """The selection is not valid, or the judge's answer breaks its schema; the message names the criterion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionScore:
    """The judge's score for one criterion."""

    metric: str
    score: int  # 0 to 5; a binary one is 5 or 0
    label: str
    weight: float
    is_binary: bool
    tier: str
    justification: str
    failure_code: str | None
    turns: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationVerdict:
    """The document's outcome of a conversation."""

    overall_score: float  # 0 to 100, two decimals
    passed: bool
    metric_scores: tuple[CriterionScore, ...]


def resolve_weights(
    selection: Sequence[tuple[str, float | None]] | None,
) -> tuple[tuple[Criterion, float], ...]:
    """The selected criteria in order with weights that sum to 1; none selected = the eight defaults.

    Raises VerdictError: an id is unknown or named twice, a weight is negative or missing where there is no default, or
    they sum to nothing.
    """
    if not selection:
        selection = [(each.name, None) for each in CRITERIA if each.include_in_defaults]
    chosen: dict[str, float] = {}
    for name, weight in selection:
        if name not in BY_NAME:
            raise VerdictError(f"unknown metric `{name}`")
        if name in chosen:
            raise VerdictError(f"metric `{name}` is selected twice")
        chosen[name] = _weight(BY_NAME[name], weight)
    total = math.fsum(chosen.values())
    if total <= 0:
        raise VerdictError("the weights must sum to a positive number")
    return tuple((BY_NAME[name], weight / total) for name, weight in chosen.items())


def _weight(criterion: Criterion, weight: float | None) -> float:
    if weight is None:
        if not criterion.include_in_defaults:
            raise VerdictError(f"metric `{criterion.name}` needs an explicit weight")
        return criterion.default_weight
    if not 0 <= weight < math.inf:
        raise VerdictError(f"metric `{criterion.name}`: the weight must not be negative")
    return weight


def verdict(
    answer: JSON,
    criteria: Sequence[tuple[Criterion, float]],
    *,
    pass_threshold: float = PASS_THRESHOLD,
) -> ConversationVerdict:
    """The verdict of a judge's answer, which has one block per criterion id.

    Raises VerdictError: a block is missing or breaks its schema, or the threshold is not from 0 to 100.
    """
    if not 0 <= pass_threshold <= 100:
        raise VerdictError("pass_threshold: expected a number from 0 to 100")
    blocks = object_of(answer)
    if blocks is None:
        raise VerdictError("the answer is not an object")
    scores = tuple(_score(each, weight, blocks.get(each.name)) for each, weight in criteria)
    # In the reference's order of operations: a tie such as 10.625 is rounded the same way.
    share = 0.0
    for each in scores:
        share += each.score / 5 * each.weight
    overall = round(share * 100, 2)
    return ConversationVerdict(
        overall_score=overall, passed=overall >= pass_threshold, metric_scores=scores
    )


def outcomes(answer: JSON, statements: Sequence[str] | None) -> list[JSON] | None:
    """The judge's findings on expected outcomes: reported, never scored; None without expected outcomes."""
    entries = list_of((object_of(answer) or {}).get("expected_outcomes"))
    if not statements or entries is None:
        return None
    every = [each for each in map(object_of, entries) if each is not None]
    return [
        {
            "statement": _as_text(each.get("statement")),
            "passed": _truth(each.get("passed")),
            "justification": _as_text(each.get("justification")),
        }
        for each in every
    ]


def _truth(value: JSON) -> bool:
    return value.strip().lower() == "true" if isinstance(value, str) else bool(value)


def _as_text(value: JSON) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


def _score(criterion: Criterion, weight: float, block: JSON) -> CriterionScore:
    fields = object_of(block)
    if fields is None:
        raise VerdictError(f"`{criterion.name}`: the answer lacks it")
    justification = fields.get("justification")
    code = fields.get("failure_code") or None  # an empty one means there is none
    if not isinstance(justification, str):
        raise VerdictError(f"`{criterion.name}`: the justification is not text")
    if code is not None and not isinstance(code, str):
        raise VerdictError(f"`{criterion.name}`: the failure code is not text")
    score, label = _binary(criterion, fields) if criterion.is_binary else _scored(criterion, fields)
    return CriterionScore(
        metric=criterion.name,
        score=score,
        label=label,
        weight=weight,
        is_binary=criterion.is_binary,
        tier=criterion.tier,
        justification=justification,
        failure_code=code,
        turns=_turns(criterion, fields.get("turns")),
    )


def _binary(criterion: Criterion, fields: Mapping[str, JSON]) -> tuple[int, str]:
    passed = fields.get("passed")
    if not isinstance(passed, bool):
        raise VerdictError(f"`{criterion.name}`: `passed` must be true or false")
    return (5, "pass") if passed else (0, "fail")


def _scored(criterion: Criterion, fields: Mapping[str, JSON]) -> tuple[int, str]:
    number = _truncated(fields.get("score"))
    if number is None:
        raise VerdictError(f"`{criterion.name}`: `score` is not an integer")
    score = min(5, max(0, number))
    return score, LABELS[score]


def _truncated(value: JSON) -> int | None:
    """Toward zero; integer text is accepted, true and false are not numbers."""
    try:
        return None if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _turns(criterion: Criterion, turns: JSON) -> tuple[int, ...]:
    """Whole numbers or their text; an empty value is an empty list."""
    if not turns:
        return ()
    numbers = [_whole(turn) for turn in list_of(turns) or [None]]
    found = tuple(number for number in numbers if number is not None)
    if len(found) < len(numbers):
        raise VerdictError(f"`{criterion.name}`: `turns` is not a list of whole numbers")
    return found


def _whole(value: JSON) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() else None
