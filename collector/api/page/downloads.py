"""What the page of a trace offers as files: its recording, and a case for an expectations file. Pure."""

from __future__ import annotations

from collector.api.traces import FullTrace
from collector.base.child import LENGTH
from collector.config.strict_yaml import in_yaml
from evaluators.expectations import case_of

CORRECTION = "correction"
"""Of feedback whose comment is the answer that a person expected."""
_HEAD = """\
# What the agent did in trace {trace_id}, as a case for the file under `expectations`.
# Correct what should have been otherwise: the output, the tools in their order, their arguments.
"""


def recording(full: FullTrace) -> bytes:
    """The trace as a `.otlp` file, which `spanwise evaluate` reads: each request after its length (4 bytes)."""
    return b"".join(LENGTH.pack(len(each)) + each for each in full.pieces)


def case(full: FullTrace) -> str:
    """The trace as an entry of an expectations file, in YAML."""
    corrected = next(
        (
            each.comment
            for each in full.shown.feedback
            if each.name == CORRECTION and each.kind == "human" and each.comment
        ),
        None,
    )
    entry = case_of(full.whole, corrected=corrected)
    return _HEAD.format(trace_id=full.whole.trace_id) + in_yaml([entry])
