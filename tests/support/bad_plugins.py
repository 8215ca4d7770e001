"""Evaluators of third parties that go wrong, each in its own way; the way is the name of the evaluator."""

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

from evaluators import Judge, Score, Session, Trace, evaluator

LEFT = []


@evaluator(version="1", name="exits")
def exits(subject: Subject) -> Score:
    sys.exit(3)


@evaluator(version="1", name="ends_the_process")
def ends_the_process(subject: Subject) -> Score:
    os._exit(4)


@evaluator(version="1", name="kills_itself")
def kills_itself(subject: Subject) -> Score:
    os.kill(os.getpid(), signal.SIGKILL)


@evaluator(version="1", name="interrupts")
def interrupts(subject: Subject) -> Score:
    raise KeyboardInterrupt


@evaluator(version="1", name="hangs")
def hangs(subject: Subject) -> Score:
    time.sleep(10000)


@evaluator(version="1", name="hangs_in_c")
def hangs_in_c(subject: Subject) -> Score:
    ctypes.PyDLL(None).sleep(10000)  # it keeps the interpreter's lock


@evaluator(version="1", name="recurses")
def recurses(subject: Subject) -> Score:
    def deeper() -> Score:
        return deeper()

    return deeper()


@evaluator(version="1", name="takes_memory")
def takes_memory(subject: Subject) -> Score:
    LEFT.append(bytearray(4 << 30))


@evaluator(version="1", name="leaves_threads")
def leaves_threads(subject: Subject) -> Score:
    for _ in range(50):
        threading.Thread(target=time.sleep, args=(10000,)).start()
    return Score(value=0.5)


@evaluator(version="1", name="prints")
def prints(subject: Subject) -> Score:
    print("printed in Python")
    os.write(1, b"written to descriptor 1\\n")
    subprocess.run(["echo", "printed by a child"])
    return Score(value=0.5)


@evaluator(version="1", name="returns_text")
def returns_text(subject: Subject) -> Score:
    return "0.5"


@evaluator(version="1", name="returns_endless_metadata")
def returns_endless_metadata(subject: Subject) -> Score:
    endless = []
    endless.append(endless)
    return Score(value=0.5, metadata={"endless": endless})
"""
KINDS = tuple(line.split('"')[3] for line in SOURCE.splitlines() if line.startswith("@evaluator"))
DIES = {"ends_the_process", "kills_itself", "hangs", "hangs_in_c"}
"""Those that cost their process."""
SCOPES = {
    "trace": "subject: Trace",
    "session": "subject: Session",
    "judge": "subject: Trace, *, judge: Judge",
}
"""What they take: those of `judge` run where a judge is asked."""
IMPORTS = {
    "import_raises": "raise RuntimeError('not today')",
    "import_exits": "import os; os._exit(5)",
    "import_interrupts": "raise KeyboardInterrupt",
    "import_hangs": "import time; time.sleep(10000)",
}
"""Plug-ins that go wrong as they are imported."""


def bad(folder: Path, *kinds: str, scope: str = "trace") -> Path:
    """A file of evaluators with these kinds alone."""
    blocks = SOURCE.replace("subject: Subject", SCOPES[scope]).split("@evaluator(")
    chosen = [block for block in blocks[1:] if block.split('"')[3] in kinds]
    file = folder / "bad.py"
    file.write_text("@evaluator(".join([blocks[0], *chosen]))
    return file
