"""Evaluators of third parties that go wrong, each in its own way; the way is the name of the evaluator."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from textwrap import indent

_TABLES = tomllib.loads((Path(__file__).parents[1] / "data" / "bad_plugins.toml").read_text())
HALF = "\nreturn Score(value=0.5)"
DIES: Mapping[str, str] = _TABLES["dies"]
"""Those that cost their process."""
FAILS: Mapping[str, str] = _TABLES["fails"]
"""Those whose every outcome is an error of their own."""
SPOILS: Mapping[str, str] = _TABLES["spoils"]
"""Those that return a score, and what else their process does is spoiled."""
IMPORTS: Mapping[str, str] = _TABLES["imports"]
"""Plug-ins that go wrong as they are imported."""
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


def bad(folder: Path, *kinds: str, scope: str = "trace", name: str = "bad") -> Path:
    """A file of evaluators with these kinds alone."""
    bodies = {**DIES, **FAILS, **{kind: body + HALF for kind, body in SPOILS.items()}}
    functions = (
        f'\n\n@evaluator(version="1", name="{kind}")\ndef {kind}({SCOPES[scope]}) -> Score:\n'
        + indent(bodies[kind], "    ")
        for kind in kinds
    )
    file = folder / f"{name}.py"
    file.write_text(_TABLES["header"] + "".join(functions) + "\n")
    return file
