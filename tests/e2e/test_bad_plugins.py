"""Evaluators of third parties that exit, die, hang, print and worse: every score of ours arrives all the same."""

import json
import time
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
TRACES = 20
LATEST = 30.0
"""Seconds from a trace to the last of our scores of it, and from a session's close to the last of its scores."""
Signals = Sequence[dict[str, Any]]
IDLE = 1.0
SETTINGS = ("embedder.kind=none", "windows.trace.root_grace=300ms", f"windows.session.idle={IDLE}s")
KINDS = (
    *("exits", "ends_the_process", "kills_itself", "interrupts", "hangs", "hangs_in_c", "recurses"),
    *("takes_memory", "leaves_threads", "forks_and_returns", "writes_descriptors", "prints"),
    *("returns_text", "returns_endless_metadata"),
)
COSTLY = {*DIES, "forks_and_returns", "writes_descriptors"} - {"ends_the_process"}
CASES: list[tuple[str, tuple[str, ...]]] = [
    ("session", KINDS),
    # Each death costs a start of their one process, which takes seconds: one that ends it, one that hangs.
    ("judge", tuple(kind for kind in KINDS if kind not in COSTLY)),
    ("judge", ("hangs_in_c", "prints")),
]
NAMED = [f"{scope}-{len(kinds)}" for scope, kinds in CASES]


def hasty(kinds: Sequence[str]) -> Sequence[str]:
    """Those that hang have two seconds, so that the tests have not to wait for ten."""
    return [f"evaluators.bad/{kind}.timeout=2s" for kind in kinds if kind.startswith("hangs")]


def judge_settings(server: OpenAiServer | None) -> Sequence[str]:
    if server is None:
        return ()
    return (*server.settings, "judge.budget.calls_per_minute=1000")


def told_of(signals: Signals) -> dict[str, set[str | None]]:
    """By evaluator of theirs, how its evaluations ended: a type of error, or None. Not of which a session gave up."""
    found: dict[str, set[str | None]] = {}
    for each in signals:
        if "/" in each["evaluator"] and each["outcome"] != "skipped":
            found.setdefault(each["evaluator"], set()).add(each["error"] and each["error"]["type"])
    return found


def ours(signals: Signals, scope: str) -> dict[str, set[tuple[str, str]]]:
    """By session, our evaluators and their methods that said something final, and something else than `failed`."""
    found: dict[str, set[tuple[str, str]]] = {}
    for each in signals:
        is_ours = each["scope"] == scope and "/" not in each["evaluator"]
        if is_ours and each["final"] and each["outcome"] != "failed":
            found.setdefault(each["session_id"], set()).add((each["evaluator"], each["method"]))
    return found


def every_session() -> set[str]:
    return {f"s{number}" for number in range(TRACES)}


def all_of_ours(signals: Signals, scope: str, *, judged: bool) -> bool:
    """Whether every trace, or session, has the same scores of ours, the judged ones among them."""
    found = ours(signals, scope)
    said = [found.get(each, set[tuple[str, str]]()) for each in every_session()]
    if not all(said) or any(each != said[0] for each in said):
        return False
    return not judged or ("task_completion", "llm_judge") in said[0]


def check_words(told: dict[str, set[str | None]], kinds: Sequence[str]) -> None:
    """Each kind has an outcome, which names what it did."""
    for kind in kinds:
        word = told[f"bad/{kind}"]
        if kind == "writes_descriptors":  # which of its process' descriptors answers ours
            assert word & {None, "worker_died", "switched_off"}
            continue
        if kind in {"leaves_threads", "forks_and_returns", "prints"}:
            # At its bound of memory no more threads begin.
            assert None in word
            continue
        assert None not in word
        if kind in DIES:
            assert "switched_off" in word
            # An exception of Python's where its neighbours in the process have left it no thread or memory.
            assert word <= {"worker_died", "timeout", "switched_off", "exception"}
        else:
            assert not word & {"worker_died", "timeout", "judge_died", "switched_off"}


@pytest.mark.parametrize(("scope", "kinds"), CASES, ids=NAMED)
def test_live_every_score_of_ours_arrives_beside(
    tmp_path: Path, scope: str, kinds: tuple[str, ...]
) -> None:
    plugin = bad(tmp_path, *kinds, scope=scope)
    judged = scope == "judge"
    with (
        OpenAiServer() if judged else nullcontext() as server,
        Service(
            tmp_path / "data",
            *SETTINGS,
            f'plugins=["{plugin}"]',
            *judge_settings(server),
            *hasty(kinds),
        ) as service,
    ):
        send(service.grpc, asked("warm-up", "hello"))
        service.wait_for("a first score", lambda: ours(service.signals(), "trace"))
        began = time.monotonic()
        send(service.grpc, *(asked(f"s{n}", "hello", number=0) for n in range(TRACES)))
        service.wait_for(
            "every score of ours of traces",
            lambda: all_of_ours(service.signals(), "trace", judged=judged),
            timeout=LATEST,
        )
        assert time.monotonic() - began < LATEST
        if scope == "session":
            service.wait_for(
                "every score of ours of sessions",
                lambda: all_of_ours(service.signals(), "session", judged=False),
                timeout=LATEST + IDLE,
            )
        service.wait_for(
            "a word of each plug-in",
            lambda: {f"bad/{kind}" for kind in kinds} <= told_of(service.signals()).keys(),
        )
        assert service.get("/readyz") is not None
        metrics = service.metrics()
        assert metrics.get('spanwise_worker_restarts_total{reason="never_up"}', 0) == 0
        off = [f'spanwise_evaluator_switched_off{{evaluator="bad/{kind}"}}' for kind in kinds]
        assert set(off) <= metrics.keys()


def test_each_file_and_ours_lose_nothing_to_all_kinds_at_once(tmp_path: Path) -> None:
    files = [str(bad(tmp_path, *kinds, name=name)) for name, kinds in FILES.items()]
    files.append(str(bad(tmp_path, "disables_gc", name="fine")))
    short = [f"evaluators.dies/{kind}.timeout=2s" for kind in HANGS]
    with Service(tmp_path / "data", *SETTINGS, f"plugins={json.dumps(files)}", *short) as service:
        send(service.grpc, *(asked(f"s{n}", "hello", number=0) for n in range(TRACES)))
        service.wait_for(
            "every score of ours of traces",
            lambda: all_of_ours(service.signals(), "trace", judged=False),
            timeout=LATEST,
        )
        service.wait_for(
            "every score of ours of sessions",
            lambda: all_of_ours(service.signals(), "session", judged=False),
            timeout=LATEST + IDLE,
        )
        service.come_to({None}, lambda: told_of(service.signals()).get("fine/disables_gc"))


def recorded(folder: Path, *sessions: str) -> str:
    """A recording of so many sessions."""
    write(folder / "recorded.otlp", [asked(each, "hello") for each in sessions])
    return str(folder / "recorded.otlp")


def scored_with(folder: Path, plugins: Sequence[Path], *given: str, timeout: float) -> Signals:
    """The signals of the recording of all sessions."""
    return evaluated(
        recorded(folder, *sorted(every_session())),
        *(part for each in plugins for part in ("--plugin", str(each))),
        *settings(*given, "embedder.kind=none", f"data_dir={folder / 'data'}"),
        timeout=timeout,
    )


def test_evaluate_has_a_word_of_each_kind_and_every_score_of_ours(tmp_path: Path) -> None:
    files = [bad(tmp_path, *kinds, name=name) for name, kinds in FILES.items()]
    files.append(bad(tmp_path, "disables_gc", name="fine"))
    hurried = [f"evaluators.dies/{kind}.timeout=2s" for kind in HANGS]
    # However busy the machine is, none of these takes too long.
    patient = ("fine/disables_gc", *(f"fails/{kind}" for kind in FAILS))
    hurried += [f"evaluators.{name}.timeout=90s" for name in patient]

    signals = scored_with(tmp_path, files, *hurried, timeout=240)

    assert all_of_ours(signals, "trace", judged=False)
    assert all_of_ours(signals, "session", judged=False)
    told = told_of(signals)
    assert told["fine/disables_gc"] == {None}
    died = {None, "worker_died", "timeout", "switched_off"}
    assert {kind for kind in FAILS if told[f"fails/{kind}"] & died} == set()
    assert {kind for kind in DIES if not told[f"dies/{kind}"] < died} == set()
    assert told.keys() >= {f"spoils/{kind}" for kind in SPOILS}


def test_one_that_ends_its_process_is_named_and_switched_off(tmp_path: Path) -> None:
    plugin = bad(tmp_path, "ends_the_process", "prints")
    with Service(tmp_path / "data", *SETTINGS, f'plugins=["{plugin}"]') as service:
        send(service.grpc, *(asked(f"s{n}", "hello") for n in range(TRACES)))
        service.come_to(
            {"bad/ends_the_process": {"worker_died", "switched_off"}, "bad/prints": {None}},
            lambda: told_of(service.signals()),
        )
        gauge = 'spanwise_evaluator_switched_off{evaluator="bad/ends_the_process"}'
        service.come_to(1, lambda: service.metrics()[gauge])
        assert service.metrics()['spanwise_evaluator_switched_off{evaluator="bad/prints"}'] == 0
        rows = {each["name"]: each for each in service.get("/api/v1/evaluators")["items"]}
        assert rows["bad/ends_the_process"]["switched_off"]
        assert not rows["bad/prints"]["switched_off"]
        assert service.text("/evaluators").count("Switched off for ten minutes") == 1
    assert service.output.read_text().count("is switched off for 10 min") == 1


@pytest.mark.parametrize(("scope", "kinds"), CASES, ids=NAMED)
def test_evaluate_has_every_score_of_ours_beside(
    tmp_path: Path, scope: str, kinds: tuple[str, ...]
) -> None:
    plugin = bad(tmp_path, *kinds, scope=scope)
    judged = scope == "judge"

    with OpenAiServer() if judged else nullcontext() as server:
        chosen = (*judge_settings(server), *hasty(kinds))
        # Each of twelve takes its own time before it is switched off, and a judge's process several seconds to start:
        # 40 together, and 96 on two cores beside ten other processes.
        signals = scored_with(tmp_path, [plugin], *chosen, timeout=6 * LATEST)

    assert all_of_ours(signals, "trace", judged=judged)
    assert all_of_ours(signals, "session", judged=False)
    check_words(told_of(signals), kinds)


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
        chosen = (*judge_settings(server), "embedder.kind=none", f"data_dir={tmp_path / 'data'}")
        evaluated(recorded(tmp_path, "s1"), "--plugin", str(plugin), *settings(*chosen))

    seen = [line.split() for line in (tmp_path / "seen").read_text().splitlines()]
    assert (
        len({pid for pid, _, _ in seen}) >= 3
    )  # that declares it, that scores with it, that judges
    assert {tuple(limits) for _, *limits in seen} == {("1000", str(PLUGIN_MEMORY))}
