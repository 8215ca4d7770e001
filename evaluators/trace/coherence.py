"""Coherence (PandaProbe): how close the output's embedding is to the input's."""

from evaluators.declare import pandaprobe
from evaluators.formulas.distribution import rounded
from evaluators.matching.text import clip, cosine_distance
from evaluators.model import Score, Trace
from evaluators.resources import Embedder


@pandaprobe(version="1", reads={"text"}, assumed_counts=True, calibrated_locally=False)
def coherence(trace: Trace, *, embedder: Embedder) -> Score:
    """1 - cosine distance between input and output, of which the first 8 KiB each are read."""
    before, after = clip(trace.input or ""), clip(trace.output or "")
    if not before or not after:
        note = {"coherence_gap": 0.0, "note": "empty_input_or_output"}
        return Score.assume(1.0, "the trace has no input or no output text", note)
    gap = cosine_distance(*embedder.embed([before, after]))
    return Score(
        value=1 - gap,
        explanation=f"cosine distance {gap:.4f} between input and output",
        metadata={"coherence_gap": rounded(gap)},
    )
