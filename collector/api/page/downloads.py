"""What the page of a trace offers as files: its recording, and a case for an expectations file. Pure."""

from __future__ import annotations

from typing import Any

import yaml

from collector.api.traces import FullTrace
from collector.base.child import LENGTH
from evaluators.expectations import case_of

_HEAD = """\
# What the agent did in trace {trace_id}, as a case for the file under `expectations`.
# Correct what should have been otherwise: the output, the tools in their order, their arguments.
"""


def recording(full: FullTrace) -> bytes:
    """The trace as a `.otlp` file, which `spanwise evaluate` reads: each request after its length (4 bytes)."""
    return b"".join(LENGTH.pack(len(each)) + each for each in full.pieces)


def case(full: FullTrace) -> str:
    """The trace as an entry of an expectations file, in YAML."""
    entry = yaml.dump(
        [case_of(full.whole)], Dumper=_Plain, allow_unicode=True, sort_keys=False, width=110
    )
    return _HEAD.format(trace_id=full.whole.trace_id) + str(entry)


class _Plain(yaml.SafeDumper):
    """Without anchors: equal arguments are written out."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
