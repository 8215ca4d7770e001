"""CPU of a span beside that of an earlier tree, by stage, on a mixed load: `python -m tests.bench.against`.

Both trees take the same load in turn, in one run, so that the ratio says the same on a busy machine. The load is mixed:
recordings of every dialect, and the bench's own traces between them; each pass has traces and sessions of its own. The
earlier tree is checked out by git below `.cache/bench`, and runs in this environment.
"""

import argparse
import hashlib
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from tests.bench.load import SESSION_MARK, TRACE_MARK, Request
from tests.bench.load import requests as made_requests
from tests.bench.measure import CACHE, Run, at_most, heading, prepared, run_service
from tests.bench.rest import Rest, at_rest
from tests.support.recordings import recordings, requests
from tests.support.service import ROOT

BASE = "b7916fe"
"""The tree that `specs/cost.md` measured."""
MARK = 0.75
"""Of its CPU a span, with everything on."""
AT_REST = "rest"
CPU_AT_REST = 0.34
"""`specs/cost.md`: 0.2 % of a core, of 0.6 that it measured."""
MEMORY_AT_REST = 0.73
"""`specs/cost.md`: 100 MB of 137."""
RECORDINGS = ROOT / "tests" / "data" / "captures"
SESSIONS = frozenset({"session.id", "gen_ai.conversation.id", "langfuse.session.id", "thread_id"})
"""Attributes that name a session."""
MADE = 150
"""Traces of the bench's own load: about as many spans as the recordings have."""
PASSES = 3
"""Of the load in one run: some ten seconds."""
STAGES: dict[str, tuple[str, ...]] = {
    "receive": ("roles=[receive]",),
    "and assemble": ("roles=[receive,assemble]",),
    "and score": ("roles=[receive,assemble,score]",),
    "everything": (),
}


@dataclass(frozen=True, slots=True)
class Tree:
    """A checkout, and the module that its command line begins with."""

    path: Path
    module: str

    def run(self, file: Path, settings: tuple[str, ...]) -> Run:
        """The load through a service of this tree."""
        return run_service(
            file, *settings, passes=PASSES, module=self.module, cwd=self.path, tree=self.path
        )

    def rest(self) -> Rest:
        """A service of this tree that is sent nothing."""
        return at_rest(module=self.module, cwd=self.path, tree=self.path)


def base_tree() -> Tree:
    """The earlier tree.

    Raises:
        SystemExit: this checkout does not have it.
    """
    path = CACHE / BASE
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        command = ["git", "worktree", "add", "--detach", str(path), BASE]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"tree {BASE} is not here, fetch the whole history: {done.stderr}")
    return Tree(path, "collector.cli")


def mixed() -> list[Request]:
    """The load: between the requests of each recording, some of the bench's own."""
    made, paths = made_requests(MADE, 64), recordings(RECORDINGS)
    each = len(made) / len(paths)
    mixed: list[Request] = []
    for number, path in enumerate(paths):
        mixed += map(_marked, requests(path))
        mixed += made[round(number * each) : round((number + 1) * each)]
    return mixed


def _marked(body: bytes) -> Request:
    """A recorded request, its traces and sessions named so that each pass can rename them."""
    request = ExportTraceServiceRequest.FromString(body)
    spans = 0
    for resource in request.resource_spans:
        _mark_sessions(resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                spans += 1
                digest = hashlib.sha256(span.trace_id).digest()
                span.trace_id = TRACE_MARK + digest[: 16 - len(TRACE_MARK)]
                _mark_sessions(span.attributes)
    return Request(request.SerializeToString(), spans)


def _mark_sessions(attributes: Iterable[KeyValue]) -> None:
    for each in attributes:
        if each.key in SESSIONS and each.value.HasField("string_value"):
            each.value.string_value += f"-{SESSION_MARK.decode()}"


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=[*STAGES, AT_REST], default=None)
    arguments = parser.parse_args()
    trees = {"this": Tree(ROOT, "collector.commands.start"), BASE: base_tree()}
    if arguments.only != AT_REST:
        _under_load(trees, arguments.rounds, STAGES if arguments.only is None else [arguments.only])
    if arguments.only in {None, AT_REST}:
        _at_rest(trees)


def _under_load(trees: Mapping[str, Tree], rounds: int, stages: Iterable[str]) -> None:
    file = prepared(f"mixed-{MADE}.pickle", mixed)
    heading(f"CPU of the process tree per span, beside tree {BASE}")
    for stage in stages:
        micros: dict[str, list[float]] = {name: [] for name in trees}
        for number in range(rounds):
            order = [*trees] if number % 2 else [*trees][::-1]
            for name in order:
                run = trees[name].run(file, STAGES[stage])
                micros[name].append(run.per_million)
        mine, base = (median(each) for each in micros.values())
        at_most(f"{stage}: {mine:.0f} us a span, {base:.0f} there", mine / base, MARK)


def _at_rest(trees: Mapping[str, Tree]) -> None:
    heading(f"A service that is sent nothing, beside tree {BASE}")
    mine, base = (tree.rest() for tree in trees.values())
    what = f"CPU: {mine.cpu:.2f} % of a core, {base.cpu:.2f} there"
    at_most(what, mine.cpu / base.cpu, CPU_AT_REST)
    what = f"memory: {mine.resident:.0f} MiB, {base.resident:.0f} there"
    at_most(what, mine.resident / base.resident, MEMORY_AT_REST)


if __name__ == "__main__":
    main()
