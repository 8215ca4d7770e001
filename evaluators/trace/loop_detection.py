"""Loop detection (PandaProbe): does the output repeat one of the last three of its session?"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from msgspec import structs

from evaluators.counts import amount
from evaluators.declare import pandaprobe
from evaluators.formulas.distribution import clamp, rounded
from evaluators.matching.questions import asked_again
from evaluators.matching.repeats import repeats
from evaluators.matching.text import clip, cosine_distance, jaccard, words
from evaluators.model import JSON, InnerTurn, Previous, Score, ToolCall, Trace
from evaluators.resources import WINDOW, Embedder, History

LOOP = 0.5
"""Similarity above which an output counts as a repetition of an earlier one in session formulas."""
ONCE_MORE = 1
"""How often a question may be answered again in the same way: someone wants to hear it once more."""
TELLING = 24
"""Bytes of content words below which answers coincide: "Yes.", "Done.", a label, a word's translation."""

_NUMBER = re.compile(r"\d+")


@pandaprobe(version="2", reads={"text", "session"}, assumed_counts=True)
def loop_detection(trace: Trace, *, history: History, embedder: Embedder) -> Score:
    """1 - the greatest cosine similarity x word overlap with an earlier output; the first 8 KiB each are read.

    A loop is the same answer to the same question, for the third time within four turns. The same answer to another
    question, with other numbers, once more, too short to tell, or after a new look at the facts (tool calls that
    succeeded, no two alike) is not a loop: it passes, and counts nothing in session formulas. Where the questions are
    not known, the first repetition counts. Of a trace that holds several turns, each is compared with those before it,
    and the worst one is the score.
    """
    if trace.turns:
        return _of_turns(trace, history, embedder)
    current = clip(trace.output or "")
    if not history.previous:
        return _nothing("no session context provided", "the first trace of its session")
    if not current:
        return _nothing("empty_output", "the trace has no output text")
    earlier = [(index, clip(p.output)) for index, p in enumerate(history.previous) if p.output]
    if not earlier:
        return _nothing("no_previous_outputs", "no earlier trace of the session has output text")
    mine, *others = embedder.embed([current, *(text for _, text in earlier)])
    said = words(current)
    hybrids: list[float] = []
    comparisons: list[JSON] = []
    for (index, text), other in zip(earlier, others, strict=True):
        similarity = 1 - cosine_distance(mine, other)
        overlap = jaccard(said, words(text))
        hybrids.append(similarity * overlap)
        comparisons.append(
            {
                "trace_index": index,
                "cosine_similarity": rounded(similarity),
                "jaccard_similarity": rounded(overlap),
                "hybrid_score": rounded(similarity * overlap),
            }
        )
    worst = max(hybrids)
    looped: dict[int, float] = {}
    excuse = None
    if worst > LOOP:
        again = asked_again(trace.input, [previous.input for previous in history.previous])
        looped = {
            index: hybrid
            for (index, _), hybrid in zip(earlier, hybrids, strict=True)
            if hybrid > LOOP and index in again and not _progressed(trace, history.previous[index])
        }
        excuse = _excuse(trace, history, looped)
    return Score(
        value=rounded(clamp(1 - worst)),
        risk=0.0 if excuse else max(looped.values(), default=0.0),
        success=None if excuse is None else True,
        explanation=f"closest of {amount(len(earlier), 'earlier output')}: similarity {worst:.4f}"
        + ("" if excuse is None else f", {excuse}"),
        metadata={
            "window_size": len(earlier),
            "max_hybrid": rounded(worst),
            "comparisons": comparisons,
        },
    )


def _of_turns(trace: Trace, history: History, embedder: Embedder) -> Score:
    """The score of the worst turn; turns without earlier ones have none."""
    earlier = list(history.previous)
    worst: Score | None = None
    for number, turn in enumerate(trace.turns, start=1):
        score = loop_detection(
            replace(
                trace, turns=(), input=turn.input, output=turn.output, tool_calls=_of(trace, turn)
            ),
            history=History(tuple(earlier[-WINDOW:])),
            embedder=embedder,
        )
        if score.value is not None and (worst is None or _badness(score) > _badness(worst)):
            place = f"turn {number} of {len(trace.turns)}: {score.explanation}"
            worst = structs.replace(score, explanation=place, evidence=(turn.span_id,))
        earlier.append(
            Previous(
                trace_id=trace.trace_id, digest=trace.digest, output=turn.output, input=turn.input
            )
        )
    return worst or _nothing("empty_output", "no two turns of the trace have output text")


def _of(trace: Trace, turn: InnerTurn) -> tuple[ToolCall, ...]:
    """The calls that began within the turn."""
    begun, ended = turn.start_time_unix_nano, turn.end_time_unix_nano
    return tuple(c for c in trace.tool_calls if begun <= c.start_time_unix_nano <= ended)


def _badness(score: Score) -> tuple[float, float]:
    return score.risk or 0.0, 1 - (score.value or 0.0)


def _excuse(trace: Trace, history: History, looped: Collection[int]) -> str | None:
    """Why a repeated output is not a loop; None when it is one.

    Args:
        trace: Whose output it is.
        history: The turns before it.
        looped: The places of those that gave the same answer to the same question.
    """
    if not looped:
        return "to another question, or with other numbers"
    if trace.input is None or any(history.previous[index].input is None for index in looped):
        return None
    if len(looped) <= ONCE_MORE:
        return "asked for once more"
    if (
        sum(len(word.encode(errors="replace")) for word in words(clip(trace.output or "")))
        < TELLING
    ):
        return "too short to tell"
    calls = trace.tool_calls
    if (
        calls
        and not repeats(calls)
        and all(c.error is None and c.arguments is not None for c in calls)
    ):
        return "after a new look at the facts"
    return None


def _progressed(trace: Trace, earlier: Previous) -> bool:
    """Whether the answer has other numbers than the earlier one, where both questions are known."""
    if trace.input is None or earlier.input is None:
        return False
    now, before = (
        set(_NUMBER.findall(clip(text or ""))) for text in (trace.output, earlier.output)
    )
    return now != before


def _nothing(note: str, explanation: str) -> Score:
    return Score.assume(1.0, explanation, {"note": note})
