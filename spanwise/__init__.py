"""Score your agents' traces in a notebook, a script or a test: the library of Spanwise.

    import spanwise

    traces = spanwise.read("run.otlp")
    scores = spanwise.score(traces)
    scores.failed()

The signals are those of `spanwise evaluate`, in every field but `time` and `revision`. The functions can be called
where an event loop runs already, as in a notebook; `aread`, `ascore` and `aevaluate` are the same for `await`.
"""

from evaluators import (
    Block,
    Embedder,
    Expectation,
    History,
    Judge,
    Score,
    Session,
    ToolCall,
    Trace,
    evaluator,
)
from spanwise.assertions import assert_scores
from spanwise.recordings import aread, read
from spanwise.scores import Scores
from spanwise.scoring import aevaluate, ascore, evaluate, score

__all__ = [
    "Block",
    "Embedder",
    "Expectation",
    "History",
    "Judge",
    "Score",
    "Scores",
    "Session",
    "ToolCall",
    "Trace",
    "aevaluate",
    "aread",
    "ascore",
    "assert_scores",
    "evaluate",
    "evaluator",
    "read",
    "score",
]
