"""What a target is sent: an alert fires, or is over."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from collector.records.notices import Labels, State, identity_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """An alert in one state. Texts are of agents and numbers, never of content."""

    labels: Labels  # with `alertname` and `severity`
    state: State
    start: float  # Unix seconds
    end: float | None  # None: it fires
    summary: str
    description: str
    runbook: str | None
    page: str | None  # whole addresses; None: `notify.page` is not set
    facts: Mapping[str, float] = field(default_factory=dict[str, float])
    """`mean`, `lower_bound`, `upper_bound` and `samples` of the agent's reliability, where there is one."""
    sessions: tuple[str, ...] = ()  # up to three sessions that show it

    @property
    def name(self) -> str:
        return self.label("alertname")

    @property
    def severity(self) -> str:
        return self.label("severity")

    @property
    def identity(self) -> str:
        return identity_of(self.labels)

    @property
    def id(self) -> str:
        """The same whenever this notice is sent again."""
        content = f"{self.identity} {self.start:.3f} {self.state}"
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    @property
    def subject(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.labels)

    @property
    def title(self) -> str:
        return self.severity if self.end is None else f"{self.severity} over"

    @property
    def told(self) -> str:
        if self.end is None:
            return self.description
        return f"From {clock_time(self.start)} to {clock_time(self.end)}."

    @property
    def annotations(self) -> dict[str, str]:
        """As a rule of `spanwise slo` has them."""
        texts = {
            "summary": self.summary,
            "description": self.description,
            "runbook": self.runbook,
            "page": self.page,
        }
        return {name: text for name, text in texts.items() if text is not None}

    def label(self, name: str) -> str:
        """Empty: the alert has none of this name."""
        return dict(self.labels).get(name, "")


def rfc3339(seconds: float) -> str:
    """A moment with milliseconds, in UTC."""
    at = datetime.fromtimestamp(round(seconds, 3), UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock_time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M:%S} UTC"
