"""Loop detection (PandaProbe): does the output repeat one of the last three of its session?"""

from __future__ import annotations

from evaluators.declare import pandaprobe
from evaluators.formulas.distribution import clamp, rounded
from evaluators.matching.text import asks_again, clip, cosine_distance, jaccard, words
from evaluators.model import JSON, Score, Trace
from evaluators.resources import Embedder, History

LOOP = 0.5
"""Similarity above which an output counts as a repetition of an earlier one in session formulas."""


@pandaprobe(version="2", reads={"text", "session"}, assumed_counts=True)
def loop_detection(trace: Trace, *, history: History, embedder: Embedder) -> Score:
    """1 - the greatest cosine similarity x word overlap with an earlier output; the first 8 KiB each are read.

    The same answer to another question is no loop: it passes, and counts nothing in session formulas.
    """
    current = clip(trace.output or "")
    if not history.previous:
        return _nothing("no session context provided", "the first trace of its session")
    if not current:
        return _nothing("empty_output", "the trace has no output text")
    earlier = [(index, clip(p.output)) for index, p in enumerate(history.previous) if p.output]
    if not earlier:
        return _nothing("no_previous_outputs", "no earlier trace of the session has output text")
    mine, *others = embedder.embed([current, *(text for _, text in earlier)])
    hybrids: list[float] = []
    comparisons: list[JSON] = []
    for (index, text), other in zip(earlier, others, strict=True):
        similarity = 1 - cosine_distance(mine, other)
        overlap = jaccard(words(current), words(text))
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
    asked_again = any(
        hybrid > LOOP and asks_again(trace.input, history.previous[index].input)
        for (index, _), hybrid in zip(earlier, hybrids, strict=True)
    )
    another = ", to another question" if worst > LOOP and not asked_again else ""
    return Score(
        value=rounded(clamp(1 - worst)),
        risk=worst if asked_again else 0.0,
        success=None if asked_again or worst <= LOOP else True,
        explanation=f"closest of {len(earlier)} earlier outputs: similarity {worst:.4f}{another}",
        metadata={
            "window_size": len(earlier),
            "max_hybrid": rounded(worst),
            "comparisons": comparisons,
        },
    )


def _nothing(note: str, explanation: str) -> Score:
    return Score.assume(1.0, explanation, {"note": note})
