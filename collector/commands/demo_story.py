"""What happens in the demo: an agent works well, a release makes it worse, the next one fixes it, a last one is wrong.

    python -m collector.commands.demo_story GRPC ADMIN [--no-quality]

GRPC and ADMIN are host:port; without quality there is no judge and no last release.

The story goes on when the service shows that it may: the release that is worse comes once the good one has a history;
once its drop is noticed, one of its turns runs away, until the service has noticed that too; the release that fixes it
comes when both have lasted for a while, and the one that answers politely and wrongly when all is well again. Runs
until its standard input closes, or Ctrl-C.
"""

import logging
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from itertools import product
from types import FrameType

from prometheus_client.parser import text_string_to_metric_families

from collector.commands.demo_agent import AGENT, SERVICE, TENANTS, Agent, Release, Runaway
from collector.records.standing import FAULTS_THAT_PAGE
from collector.slo.alerts import FAULT
from evaluators.counts import amount

TIMEOUT = 2.0  # seconds that an answer of the service may take
SHOWN = (
    "spanwise_drift_",
    "spanwise_fault_",
    "spanwise_runaway_",
    "spanwise_second_",
    "spanwise_drop_",
)
"""How the names of what is read begin."""

Fault = tuple[str, str]  # (fault, tool)


class DemoView:
    """The newest look at the service's faults and drops, of sessions alone."""

    def __init__(self, admin: str) -> None:
        self._admin = admin
        self.drops: Mapping[str, float] = {}
        """By evaluator whose `spanwise_drift_detected` is 1, the mean rank since its drop began."""
        self.faults: Mapping[Fault, str] = {}
        """What fails and pages, and its numbers: "9 of 9, 12 of 200 before"."""
        self.history = 0
        """Sessions in the largest history of a score; 0: there is none yet. An alarm stops one of them, not all."""
        self.runaways = 0  # traces that run away now
        self.opinion: str | None = None  # of the judge, where it agrees that there is a loss

    def look(self) -> bool:
        """Read /metrics; False: it cannot be read now."""
        try:
            text = self._metrics()
        except (OSError, HTTPException):
            return False
        lines = [each for each in text.splitlines() if each.startswith(SHOWN)]
        samples: dict[str, list[tuple[dict[str, str], float]]] = defaultdict(list)
        for family in text_string_to_metric_families("\n".join(lines)):
            for each in family.samples:
                if each.labels.get("scope", "session") == "session":
                    name = each.name.removeprefix("spanwise_")
                    samples[name].append((each.labels, each.value))

        def by_label(name: str, label: str) -> dict[str, float]:
            return {labels[label]: value for labels, value in samples[name]}

        ranks = by_label("drift_mean_rank_ratio", "evaluator")
        detected = by_label("drift_detected", "evaluator")
        self.drops = {each: ranks.get(each, 0.0) for each, value in detected.items() if value}
        self.history = int(max(by_label("drift_history_samples", "evaluator").values(), default=0))
        self.runaways = int(sum(value for _, value in samples["runaway_traces"]))
        counts = {
            (name, labels["period"], labels["fault"], labels["tool"]): int(value)
            for name in ("failures", "uses")
            for labels, value in samples[f"fault_{name}"]
        }
        self.faults = {
            fault: "{} of {}, {} of {} before".format(
                *(counts.get((name, period, *fault), 0) for period, name in COUNTS)
            )
            for labels, value in samples["fault_detected"]
            if value and (fault := (labels["fault"], labels["tool"]))[0] in FAULTS_THAT_PAGE
        }
        self.opinion = None
        if any(value == 1 for _, value in samples["drop_second_opinion"]):
            means = by_label("second_opinion_mean_ratio", "period")
            ((labels, _), *_), ((_, sessions), *_) = (
                samples[f"second_opinion_{name}"] for name in ("mean_ratio", "sessions")
            )
            self.opinion = (
                f"agrees: {labels['evaluator']} {means['before']:.2f} -> {means['since']:.2f}"
                f" over {sessions:.0f} sessions"
            )
        return True

    def _metrics(self) -> str:
        with closing(HTTPConnection(self._admin, timeout=TIMEOUT)) as connection:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()


COUNTS = tuple(product(("since", "before"), ("failures", "uses")))

GOOD = Release(version="1.4.2")
WORSE = Release(version="1.5.0", fails_for=TENANTS[0])
FIXED = Release(version="1.5.1")
WRONG = Release(version="1.6.0", is_wrong=True)

CONVERSATIONS = 200
"""That the good release has had before the story begins, so to say: they are sent fast."""
FAST, LIVE = 0.05, 0.6  # seconds between two conversations
HISTORY = 150  # conversations that a history must hold before it is compared with
STANDS = 80.0  # seconds for which the newest drop must have lasted before the agent is fixed: the fault pages after 60
PATIENCE = 300.0  # seconds after which the story goes on in any case
LOOKS = 1.0  # seconds between two looks at the service


def main() -> None:
    grpc, admin, *without = sys.argv[1:]
    # When both are stopped, the service may be gone before our last spans: nothing to complain of.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    ended = threading.Event()

    def interrupted(number: int, frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGINT, interrupted)  # Ctrl-C reaches the whole group
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    story = Story(f"http://{grpc}", f"http://{admin}", DemoView(admin), ended)
    story.tell(is_judged=not without)


class Story:
    """The releases one after the other, and what the service says of them."""

    def __init__(self, endpoint: str, page: str, watch: DemoView, ended: threading.Event) -> None:
        self._endpoint = endpoint
        self._page = page
        self._watch = watch
        self._ended = ended
        self._begin = time.monotonic()
        self._looked = 0.0
        self._number = 0
        self._released = 0  # the number of the last conversation before the newest release
        self._runaway: Runaway | None = None
        self._told_runaway = False
        self._drops: dict[str, float] = {}
        self._noticed: float | None = None
        self._opinion: str | None = None
        self._faults: dict[Fault, str] = {}
        self._pages: dict[Fault, float] = {}  # when each that has not yet lasted a minute fires

    def tell(self, *, is_judged: bool) -> None:
        """All of it; the last release works on until the end."""
        self._say(
            "good",
            f"release {GOOD.version} has answered {CONVERSATIONS} customers, few of them in vain",
        )
        last = self._number + CONVERSATIONS
        self._serve(GOOD, pause=FAST, until=lambda: self._number >= last)
        self._serve(GOOD, until=lambda: self._watch.history >= HISTORY)
        self._say(
            "worse",
            f"release {WORSE.version}: find_order no longer answers for tenant {WORSE.fails_for}",
        )
        self._serve(WORSE, until=lambda: self._stands(STANDS), beside=self._run_away)
        self._say("fixed", f"release {FIXED.version}: find_order answers for everyone again")
        self._serve(FIXED, until=self._is_well if is_judged else None)
        if is_judged:
            self._say("wrong", f"release {WRONG.version}: it answers politely, another question")
            self._serve(WRONG, until=None)

    def _is_well(self) -> bool:
        return not (self._drops or self._faults or self._opinion)

    def _serve(
        self,
        release: Release,
        *,
        pause: float = LIVE,
        until: Callable[[], bool] | None,
        beside: Callable[[Agent], None] | None = None,
    ) -> None:
        patience, self._released = time.monotonic() + PATIENCE, self._number
        with closing(Agent(self._endpoint, release)) as agent:
            while not self._ended.is_set():
                self._number += 1
                agent.serve(self._number)
                self._look()
                if beside is not None:
                    beside(agent)
                if until is not None and (until() or time.monotonic() > patience):
                    return
                self._ended.wait(pause)

    def _run_away(self, agent: Agent) -> None:
        """Once the drop is noticed: a turn that repeats one call, until the service tells that it runs away."""
        if self._noticed is None or self._told_runaway:
            return
        if self._runaway is None:
            self._number += 1
            self._runaway = agent.run_away(self._number)
        self._runaway.call()
        self._runaway.call()
        if self._watch.runaways:
            self._told_runaway = True
            calls, trace = self._runaway.calls, self._runaway.trace_id
            self._say("runaway", f"one turn has asked the same {calls} times and is still open")
            self._show(f"/trace?id={trace}")
            self._runaway.end()

    def _stands(self, seconds: float) -> bool:
        return self._noticed is not None and time.monotonic() - self._noticed > seconds

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOKS or not self._watch.look():
            return
        self._looked = now
        self._say_faults(now)
        before, self._drops = self._drops, dict(self._watch.drops)
        for evaluator in sorted(self._drops.keys() - before.keys()):
            first, self._noticed = self._noticed is None, now
            rank, sessions = self._drops[evaluator], self._number - self._released
            self._say(
                "noticed",
                f"{evaluator} after {amount(sessions, 'session')}: rank {rank:.2f}, usually 0.50",
            )
            if first:
                self._show(f"/agent?service={SERVICE}&agent={AGENT}")
        for evaluator in sorted(before.keys() - self._drops.keys()):
            self._say("cleared", f"{evaluator} is as it was")
        if self._watch.opinion is not None and self._opinion is None:
            self._say("judge", self._watch.opinion)
            if not self._faults:  # else these page
                self._write(f"{'':<18}AgentScoreDrop pages in a minute")
        self._opinion = self._watch.opinion

    def _say_faults(self, now: float) -> None:
        before, self._faults = self._faults, dict(self._watch.faults)
        for fault, tool in sorted(self._faults.keys() - before.keys()):
            self._pages[fault, tool] = now + 60 * FAULT.hold
            self._say("fault", f"{fault} {tool}")
            self._write(f"{'':<18}in {self._faults[fault, tool]}")
        for fault, tool in sorted(before.keys() - self._faults.keys()):
            pages = self._pages.pop((fault, tool), None)
            self._say("fault", f"{fault} {tool} is over{'' if pages is None else ', no alert'}")
        for fault, tool in [each for each, at in self._pages.items() if at <= now]:
            del self._pages[fault, tool]
            self._say("alert", f"AgentFault fires: {fault} {tool}")

    def _say(self, what: str, text: str) -> None:
        """One line, with the seconds since the beginning; none once it has ended."""
        self._write(f"{time.monotonic() - self._begin:5.0f} s  {what:<8} {text}")

    def _show(self, path: str) -> None:
        self._write(f"{'':<9}{self._page}{path}")

    def _write(self, line: str) -> None:
        if self._ended.is_set():
            return
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
