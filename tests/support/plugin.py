"""A third party's evaluators, installed in a folder: what `pip install --target` would leave there."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from evaluators.registry import installed_points

SOURCE = '''
import os
import time
from pathlib import Path

from evaluators import Score, Trace, evaluator


def obey(question: str) -> None:
    """Does what the question says: waits, dies, or dies the first time."""
    order, _, argument = question.partition(" ")
    if order == "sleep":
        time.sleep(float(argument))
    if order == "die":
        os._exit(9)
    if order == "die-once" and not Path(argument).exists():
        Path(argument).touch()
        os._exit(9)
    if order == "mark" or (order == "mark-once" and not Path(argument).exists()):
        Path(argument).touch()
        time.sleep(30)


@evaluator(version="1")
def obeys(trace: Trace) -> Score:
    """Whatever the question says."""
    obey(trace.input or "")
    return Score(value=1.0)
'''


def install(folder: Path, source: str = SOURCE) -> Path:
    """Put the package `this_test` with its entry point there; the folder goes onto PYTHONPATH."""
    (folder / "this_test").mkdir(parents=True)
    (folder / "this_test" / "__init__.py").write_text(source)
    about = folder / "this_test-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: this_test\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[spanwise.evaluators]\nthis_test = this_test\n")
    return folder


READER = """
from collector.reading.trace_scoring import TraceScoring
from this_test import obey

scored = TraceScoring.outcomes


def outcomes(self, trace):
    obey(trace.input or "")
    return scored(self, trace)


TraceScoring.outcomes = outcomes
"""


def obeying_reader(folder: Path) -> Path:
    """Workers of ours obey what the question says, as a bug of ours might: the folder goes onto PYTHONPATH."""
    obey, _, _ = SOURCE.partition("@evaluator")
    folder.mkdir()
    (folder / "this_test.py").write_text(obey)
    (folder / "sitecustomize.py").write_text(READER)
    return folder


@contextmanager
def imported_from(folder: Path) -> Generator[None]:
    """The package is importable in the block, and forgotten after it: another test may have its own `this_test`."""
    sys.path.insert(0, str(folder))
    installed_points.cache_clear()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        installed_points.cache_clear()
        sys.modules.pop("this_test", None)
