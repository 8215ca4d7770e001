"""Evaluators of third parties that go wrong, each in its own way; the way is the name of the evaluator."""

from __future__ import annotations

from pathlib import Path

SOURCE = """
import ctypes
import itertools
import os
import signal
import subprocess
import sys
import threading
import time

from evaluators import Score, Trace, evaluator

LEFT = []


@evaluator(version="1", name="exits")
def exits(trace: Trace) -> Score:
    sys.exit(3)


@evaluator(version="1", name="ends_the_process")
def ends_the_process(trace: Trace) -> Score:
    os._exit(4)


@evaluator(version="1", name="kills_itself")
def kills_itself(trace: Trace) -> Score:
    os.kill(os.getpid(), signal.SIGKILL)


@evaluator(version="1", name="interrupts")
def interrupts(trace: Trace) -> Score:
    raise KeyboardInterrupt


@evaluator(version="1", name="hangs")
def hangs(trace: Trace) -> Score:
    time.sleep(10000)


@evaluator(version="1", name="hangs_in_c")
def hangs_in_c(trace: Trace) -> Score:
    ctypes.PyDLL(None).sleep(10000)  # it keeps the interpreter's lock


@evaluator(version="1", name="recurses")
def recurses(trace: Trace) -> Score:
    return recurses(trace)


@evaluator(version="1", name="takes_memory")
def takes_memory(trace: Trace) -> Score:
    LEFT.append(bytearray(4 << 30))


@evaluator(version="1", name="leaves_threads")
def leaves_threads(trace: Trace) -> Score:
    for _ in range(50):
        threading.Thread(target=time.sleep, args=(10000,)).start()
    return Score(value=0.5)


@evaluator(version="1", name="prints")
def prints(trace: Trace) -> Score:
    print("printed in Python")
    os.write(1, b"written to descriptor 1\\n")
    subprocess.run(["echo", "printed by a child"])
    return Score(value=0.5)


@evaluator(version="1", name="returns_text")
def returns_text(trace: Trace) -> Score:
    return "0.5"


@evaluator(version="1", name="returns_endless_metadata")
def returns_endless_metadata(trace: Trace) -> Score:
    endless = []
    endless.append(endless)
    return Score(value=0.5, metadata={"endless": endless})
"""
KINDS = tuple(line.split('"')[3] for line in SOURCE.splitlines() if line.startswith("@evaluator"))
DIES = {"ends_the_process", "kills_itself", "hangs", "hangs_in_c"}
"""Those that cost their process."""


def bad(folder: Path, *kinds: str) -> Path:
    """A file of evaluators with these kinds alone."""
    blocks = SOURCE.split("@evaluator(")
    chosen = [block for block in blocks[1:] if block.split('"')[3] in kinds]
    file = folder / "bad.py"
    file.write_text("@evaluator(".join([blocks[0], *chosen]))
    return file
