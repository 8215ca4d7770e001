"""One agent whose drop a judge is asked about: its sessions as the signals of them come."""

from collections.abc import Iterable

from collector.config.tree import JudgeMore
from collector.records.signal import rfc3339
from collector.records.signal_batch import SignalHeader, SubjectHeader
from collector.watch.second_opinions import DAY, NearAlarm, SecondOpinions
from collector.watch.windows.subject_view import SubjectView

AGENT = ("bot", "planner")
SETTLE = 300.0
START = 10 * DAY + 3600.0  # early in a day


def made(more: JudgeMore | None = None, *, partitions: int = 1) -> SecondOpinions:
    settings = more or JudgeMore(new_version=None, drop=40)
    return SecondOpinions(settings, "task_completion", settle=SETTLE, partitions=partitions)


class Story:
    """One agent, whose sessions come every ten seconds and are judged at once."""

    def __init__(
        self, opinions: SecondOpinions | None = None, agent: tuple[str, str] = AGENT
    ) -> None:
        self.opinions = opinions or made()
        self.agent = agent
        self.now = START
        self.sessions = 0
        self.dropped: float | None = None
        self.progress = 0.0
        self.version = "1"
        self.asked: list[tuple[str | None, int]] = []

    def judged(
        self,
        scores: Iterable[float],
        *,
        sample: str = "more",
        failed: bool = False,
        reason: str | None = None,
        again: float | None = None,
    ) -> None:
        for score in scores:
            self.now += 10.0
            self.sessions += 1
            subject = SubjectHeader(
                "trace",
                "bot",
                "planner",
                f"s{self.sessions}",
                "session.id",
                rfc3339(self.now),
                agent_version=self.version,
            )
            header = SignalHeader(
                f"{self.sessions:032x}",
                "task_completion",
                "llm_judge",
                "failed" if failed else "scored",
                final=True,
                score=None if failed else score,
                first=True,
                sample=sample,
                again=again,
                reason=reason,
            )
            self.opinions.take(self.agent, SubjectView(subject, self.now), header, is_new=True)
            self.look()

    def look(self, after: float = 0.0) -> None:
        self.now += after
        alarm = NearAlarm("work_baseline/session", self.progress, self.sessions, self.dropped)
        self.opinions.look(self.agent, {self.version}, [alarm], self.now)
        self.asked += [(each.version, each.sessions) for each in self.opinions.requests]
        self.opinions.pending()
        self.opinions.written()

    def drop(self) -> None:
        self.dropped, self.progress = self.now, 1.0
        self.look()

    @property
    def words(self) -> str:
        return self.opinions.shown()[self.agent].words


def dropped(before: Iterable[float] | None = None) -> Story:
    """A story whose scores have dropped, after these judged ones: 40 good ones if they are not given."""
    story = Story()
    story.judged(GOOD if before is None else before)
    story.drop()
    return story


GOOD, BAD = [0.9, 0.8, 0.95, 0.85] * 10, [0.5, 0.4, 0.9, 0.55] * 10
