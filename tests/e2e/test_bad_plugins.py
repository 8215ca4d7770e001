"""Evaluators of third parties that exit, die, hang, print and worse: every score of ours arrives all the same."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from collector.base.plugins import PLUGIN_MEMORY
from tests.support.asking import asked
from tests.support.bad_plugins import DIES, FAILS, FILES, HANGS, SPOILS, bad
from tests.support.command import evaluated, settings
from tests.support.openai_server import OpenAiServer
from tests.support.recordings import write
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SESSIONS = [f"s{number}" for number in range(20)]
LATEST = 30.0
"""Seconds from a trace to the last of our scores of it, and from a session's close to the last of its scores."""
Signals = Sequence[dict[str, Any]]
KINDS = (
    *("exits", "ends_the_process", "kills_itself", "interrupts", "hangs", "hangs_in_c", "recurses"),
    *("takes_memory", "leaves_threads", "forks_and_returns", "writes_descriptors", "prints"),
    *("returns_text", "returns_endless_metadata"),
)
OF_JUDGES = tuple(
    # Each death costs a start of their one process, which takes seconds: one that hangs is enough.
    each
    for each in KINDS
    if each == "hangs_in_c" or each not in {*DIES, "forks_and_returns", "writes_descriptors"}
)


def said_by_theirs(signals: Signals) -> dict[str, set[str | None]]:
    """By evaluator, how its evaluations ended: a type of error, or None. Not of which a session gave up."""
    found: dict[str, set[str | None]] = {}
    for each in signals:
        if "/" in each["evaluator"] and each["outcome"] != "skipped":
            found.setdefault(each["evaluator"], set()).add(each["error"] and each["error"]["type"])
    return found


def all_of_ours(signals: Signals, scope: str, *, judged: bool = False) -> bool:
    """Whether every trace, or session, has the same final scores of ours, the judged ones among them."""
    found: dict[str, set[tuple[str, str]]] = {each: set() for each in SESSIONS}
    for each in signals:
        is_ours = each["scope"] == scope and "/" not in each["evaluator"]
        if is_ours and each["final"] and each["outcome"] != "failed":
            known = found.setdefault(each["session_id"], set())
            known.add((each["evaluator"], each["method"]))
    first, *others = (found[each] for each in SESSIONS)
    is_judged = not judged or ("task_completion", "llm_judge") in first
    return bool(first) and is_judged and all(each == first for each in others)


# A session that is due waits 15 s for a score of theirs; three judges that die one after the other take longer.
@pytest.mark.parametrize(
    ("scope", "kinds", "idle"), [("session", KINDS, "1s"), ("judge", OF_JUDGES, "10m")]
)
def test_live_every_score_of_ours_arrives_beside(
    tmp_path: Path, scope: str, kinds: tuple[str, ...], idle: str
) -> None:
    judged = scope == "judge"
    with (
        OpenAiServer() if judged else nullcontext() as server,
        Service(
            tmp_path / "data",
            *("embedder.kind=none", "windows.trace.root_grace=300ms"),
            f"windows.session.idle={idle}",
            f'plugins=["{bad(tmp_path, *kinds, scope=scope)}"]',
            *(server.settings if server else ()),
            "judge.budget.calls_per_minute=1000",
            *(f"evaluators.bad/{each}.timeout=2s" for each in kinds if each.startswith("hangs")),
        ) as service,
    ):
        send(service.grpc, asked("warm-up", "hello"))
        service.wait_for("a first score", service.signals)
        send(service.grpc, *(asked(each, "hello") for each in SESSIONS))
        service.wait_for(
            "every score of ours of traces",
            lambda: all_of_ours(service.signals(), "trace", judged=judged),
            LATEST,
        )
        if not judged:
            service.wait_for(
                "every score of ours of sessions",
                lambda: all_of_ours(service.signals(), "session"),
                LATEST + 1,
            )
        theirs = {f"bad/{kind}" for kind in kinds}
        service.wait_for(
            "a word of each",
            lambda: theirs <= said_by_theirs(service.signals()).keys(),
            4 * LATEST,
        )
        assert "the log cannot be" not in service.output.read_text(), "it is not theirs to write to"
        assert service.get("/readyz") is not None
        metrics = service.metrics()
        assert metrics.get('spanwise_worker_restarts_total{reason="never_up"}', 0) == 0
        off = 'spanwise_evaluator_switched_off{evaluator="%s"}'
        assert {off % each for each in theirs} <= metrics.keys()
        assert not metrics[off % "bad/prints"]
        if not judged:  # what ends its process is named and switched off, on its page, too
            gone = "bad/ends_the_process"
            assert service.come_to(1, lambda: service.metrics()[off % gone]) == 1
            rows = service.get("/api/v1/evaluators")["items"]
            assert {each["name"] for each in rows if each["switched_off"]} >= {gone}
            assert "Switched off for ten minutes" in service.text("/evaluators")
            assert said_by_theirs(service.signals())[gone] <= {"worker_died", "switched_off"}


def recorded(folder: Path, *sessions: str) -> list[str]:
    """A recording of so many sessions, and settings of the command."""
    write(folder / "recorded.otlp", [asked(each, "hello") for each in sessions])
    chosen = settings("embedder.kind=none", f"data_dir={folder / 'data'}")
    return [str(folder / "recorded.otlp"), *chosen]


def test_evaluate_has_a_word_of_each_kind_and_every_score_of_ours(tmp_path: Path) -> None:
    files = [bad(tmp_path, *kinds, name=name) for name, kinds in FILES.items()]
    files.append(bad(tmp_path, "disables_gc", name="fine"))
    # However busy the machine is, none that should end by itself takes too long.
    patient = ("fine/disables_gc", *(f"fails/{kind}" for kind in FAILS))
    signals = evaluated(
        *recorded(tmp_path, *SESSIONS),
        *(part for each in files for part in ("--plugin", str(each))),
        *settings(*(f"evaluators.dies/{kind}.timeout=2s" for kind in HANGS)),
        *settings(*(f"evaluators.{name}.timeout=90s" for name in patient)),
        timeout=240,
    )

    assert all_of_ours(signals, "trace")
    assert all_of_ours(signals, "session")
    said = said_by_theirs(signals)
    assert said["fine/disables_gc"] == {None}
    died = {None, "worker_died", "timeout", "switched_off"}
    assert {kind for kind in FAILS if said[f"fails/{kind}"] & died} == set()
    assert {kind for kind in DIES if not said[f"dies/{kind}"] < died} == set()
    assert said.keys() >= {f"spoils/{kind}" for kind in SPOILS}


LIMITED = """
import os, resource
from pathlib import Path
from spanwise import Judge, Score, Trace, evaluator

SEEN = Path(__file__).with_name("seen")

with SEEN.open("a") as file:
    score = Path("/proc/self/oom_score_adj").read_text().strip()
    file.write(f"{os.getpid()} {score} {resource.getrlimit(resource.RLIMIT_DATA)[0]}\\n")

@evaluator(version="1")
def scored(trace: Trace) -> Score:
    return Score(value=0.5)

@evaluator(version="1")
def judged(trace: Trace, *, judge: Judge) -> Score:
    return Score(value=0.5)
"""


def test_every_process_that_has_one_is_limited_and_is_ended_first(tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(LIMITED)
    with OpenAiServer() as server:
        own = settings(*server.settings)
        evaluated(*recorded(tmp_path, "s1"), "--plugin", str(plugin), *own)

    seen = [line.split() for line in (tmp_path / "seen").read_text().splitlines()]
    # That declares it, that scores with it, that judges.
    assert len({pid for pid, _, _ in seen}) >= 3
    assert {tuple(limits) for _, *limits in seen} == {("1000", str(PLUGIN_MEMORY))}
