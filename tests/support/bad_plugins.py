"""Evaluators of third parties that go wrong, each in its own way; the way is the name of the evaluator."""

from pathlib import Path
from textwrap import indent

HEADER = '''
import asyncio, builtins, ctypes, gc, itertools, json, locale, multiprocessing, os, re, resource, signal, subprocess
import sys, threading, time
from evaluators import Judge, Score, Session, Trace, evaluator

LEFT = []

class Odd(BaseException):
    pass

class Raises:
    def __del__(self):
        raise Odd

    def __float__(self):
        os._exit(9)

def fails(*_, **__):
    raise Odd

def hangs(*_, **__):
    time.sleep(10000)

class Unsayable(Exception):
    """Whatever is asked of it raises."""
    def __str__(self):
        raise Odd
    __repr__ = __getattribute__ = __str__

class Long(Exception):
    def __str__(self):
        return "x" * (30 << 20)
    __repr__ = __str__

class Meta(type):
    __name__ = property(fails)
    __instancecheck__ = __subclasscheck__ = __repr__ = fails

class OfMeta(Exception, metaclass=Meta):
    __class__ = property(fails)

class Text(str):
    __len__ = __str__ = __repr__ = encode = __getitem__ = __iter__ = fails

class Lazy(dict):
    __len__ = __iter__ = items = keys = __getitem__ = fails
'''
HALF = "\nreturn Score(value=0.5)"
DIES = {
    "ends_the_process": "os._exit(4)",
    "kills_itself": "os.kill(os.getpid(), signal.SIGKILL)",
    "stops_itself": "os.kill(os.getpid(), signal.SIGSTOP)",
    "hangs": "time.sleep(10000)",
    "hangs_in_c": "ctypes.PyDLL(None).sleep(10000)  # it keeps the interpreter's lock",
    "hangs_in_re": "re.match('(a|a|b)*c', 'a' * 60)",
    "loops": "for _ in itertools.repeat(0): pass",
    "loops_in_c": "sum(itertools.repeat(0))",
    "ignores_exceptions": """
while True:
    try:
        time.sleep(10000)
    except BaseException:
        pass
""",
    "closes_every_descriptor": "os.closerange(0, 1000)" + HALF,
    "returns_value_that_ends": "return Score(value=Raises())",
    "hangs_in_str": """
class Slow(Exception):
    __str__ = __repr__ = hangs
raise Slow
""",
    "hangs_in_metadata": """
class Slow(dict):
    __len__ = __iter__ = items = keys = hangs
return Score(value=0.5, metadata=Slow(x=1))
""",
    "is_traced": "ctypes.CDLL(None).ptrace(0, 0, 0, 0)\nos.kill(os.getpid(), signal.SIGTRAP)\ntime.sleep(10000)",
    "holds_the_lock": """
sys.setswitchinterval(1000)
threading.Thread(target=lambda: sum(itertools.repeat(0))).start()
time.sleep(0.1)
"""
    + HALF,
    "waits_for_itself": "lock = threading.Lock()\nlock.acquire()\nlock.acquire()",
    "writes_a_long_frame": """
for each in range(3, 20):
    try:
        os.set_blocking(each, True)
        for _ in range(2000): os.write(each, b"\\xff" * (1 << 20))
    except OSError:
        pass
""",
    "audits": "def hook(*_): raise Odd\nsys.addaudithook(hook)" + HALF,
    "crashes": "ctypes.string_at(1)",
    "aborts": "signal.signal(signal.SIGABRT, signal.SIG_IGN)\nos.abort()",
}
"""Those that cost their process: what they say is `worker_died`, `timeout` or `switched_off`."""
FAILS = {
    "exits": "sys.exit(3)",
    "interrupts": "raise KeyboardInterrupt",
    "raises_odd": "raise Odd",
    "raises_exit": "raise GeneratorExit",
    "cancels": "raise asyncio.CancelledError",
    "recurses": "return recurses(subject)",
    "takes_memory": "LEFT.append(bytearray(4 << 30))",
    "returns_text": "return '0.5'",
    "returns_nan": "return float('nan')",
    "returns_much": "return 'x' * (100 << 20)",
    "returns_much_metadata": "return Score(value=0.5, metadata={'x': 'x' * (100 << 20)})",
    "returns_generator": "yield 0.5",
    "returns_coroutine": "return asyncio.sleep(0)",
    "returns_endless_metadata": "endless = {}\nendless['x'] = endless\nreturn Score(value=0.5, metadata=endless)",
    "raises_unsayable": "raise Unsayable",
    "raises_long": "raise Long",
    "raises_of_meta": "raise OfMeta",
    "raises_group": "raise BaseExceptionGroup('x' * 1000, [Unsayable(), Odd()])",
    "raises_deep": """
error = None
for _ in range(20000):
    following = RuntimeError()
    following.__cause__ = error
    error = following
raise error
""",
    "returns_itself": "return subject",
    "returns_class": "return Score",
    "returns_endless_integer": "return 10 ** 100000",
    "returns_lazy_metadata": "return Score(value=0.5, metadata=Lazy(x=1))",
    "returns_endless_evidence": "return Score(value=0.5, evidence=itertools.count())",
    "returns_odd_text": "return Score(value=0.5, explanation=Text('x'))",
    "raises_surrogate": "raise ValueError(chr(0xD800))",
    "mutates": "subject.turns = None" + HALF,
}
"""Those whose every outcome is an error of their own."""
SPOILS = {
    "leaks": "LEFT.append(bytearray(200 << 20))",
    "leaves_threads": "for _ in range(50): threading.Thread(target=time.sleep, args=(10000,)).start()",
    "leaves_thread_that_ends": "threading.Timer(0.05, os._exit, (7,)).start()",
    "prints": """
print("printed in Python")
os.write(1, b"written to descriptor 1\\n")
subprocess.run(["echo", "printed by a child"])
""",
    "closes_output": "os.close(1)\nos.close(2)\nos.close(0)",
    "writes_to_input": "os.dup2(os.open('/dev/null', os.O_RDWR), 0)\nos.dup2(0, 1)\nos.dup2(0, 2)",
    "leaves_children": "for _ in range(5): LEFT.append(subprocess.Popen(['sleep', '300']))",
    "forks": "if not os.fork(): time.sleep(300)",
    "forks_and_returns": "os.fork()",
    "changes_folder": "os.chdir('/')",
    "changes_signals": "for each in (2, 15, 17): signal.signal(each, signal.SIG_IGN)",
    "limits_files": "resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))",
    "limits_cpu": "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))",
    "patches_json": "json.dumps = json.loads = json.JSONEncoder.encode = fails",
    "patches_builtins": "builtins.open = builtins.isinstance = builtins.len = builtins.__import__ = fails",
    "patches_modules": "import evaluators.run\nevaluators.run.settle = evaluators.run.failed = fails",
    "raises_late": "LEFT.append(Raises())\nLEFT.clear()",
    "raises_at_exit": "import atexit\natexit.register(fails)",
    "traces": "sys.settrace(fails)\nthreading.settrace(fails)",
    "lowers_recursion": "sys.setrecursionlimit(40)",
    "disables_gc": "gc.disable()\ngc.freeze()",
    "changes_locale": "locale.setlocale(locale.LC_ALL, 'C')\nos.environ.clear()",
    "clears_modules": "sys.modules.clear()\nsys.path.clear()",
    "alarms": "signal.setitimer(signal.ITIMER_REAL, 0.05)",
    "leaves_group": "os.setpgid(0, 0) if os.getpgid(0) != os.getpid() else None",
    "hangs_at_exit": "import atexit\natexit.register(hangs)\nthreading.Thread(target=hangs).start()",
    "patches_time": "time.time = time.monotonic = time.perf_counter = time.sleep = fails",
    "patches_sending": "import socket\nsocket.socket.close = socket.socket.makefile = fails",
    "changes_umask": "os.umask(0o777)",
    "leaves_session": """
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    time.sleep(60)
    os._exit(0)
""",
    "locks_memory": "ctypes.CDLL(None).mlockall(3)",
    "writes_without_end": """
def endless():
    while True:
        os.write(1, b"endless" * 100 + b"\\n")
        time.sleep(0.001)
threading.Thread(target=endless, daemon=True).start()
""",
    "closes_gates": "import logging\nlogging.disable(100)\nlogging.shutdown()",
    "excepts": "sys.excepthook = sys.unraisablehook = threading.excepthook = hangs",
    "reads_descriptors": """
for each in range(3, 20):
    try:
        os.set_blocking(each, False)
        os.read(each, 1 << 16)
    except OSError:
        pass
""",
    "writes_descriptors": """
for each in range(3, 20):
    try:
        os.write(each, b"\\0\\0\\0\\1x" * 100)
    except OSError:
        pass
""",
}
"""Those that return a score, and what else their process does is spoiled."""
FILES = {"dies": DIES, "fails": FAILS, "spoils": SPOILS}
HANGS = {kind for kind in DIES if kind.startswith(("hangs", "loops"))} | {
    *("stops_itself", "ignores_exceptions", "is_traced", "holds_the_lock", "waits_for_itself"),
    "audits",
}
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
    "import_leaves_session": """
import os, time
if not os.fork():
    os.setsid()
    if not os.fork():
        time.sleep(60)
    os._exit(0)
raise RuntimeError("left a process that holds all pipes open")
""",
}
"""Plug-ins that go wrong as they are imported."""


def bad(folder: Path, *kinds: str, scope: str = "trace", name: str = "bad") -> Path:
    """A file of evaluators with these kinds alone."""
    bodies = DIES | FAILS | {kind: body + HALF for kind, body in SPOILS.items()}
    functions = (
        f'\n\n@evaluator(version="1", name="{kind}")\ndef {kind}({SCOPES[scope]}) -> Score:\n'
        + indent(bodies[kind], "    ")
        for kind in kinds
    )
    file = folder / f"{name}.py"
    file.write_text(HEADER + "".join(functions) + "\n")
    return file
