"""A service with a judge, a budget, an objective and a sink that is away, and an agent to which everything happens.

What it shows: task runs, spans that come late, gaps, errors of the judge, judged sessions, a trace that runs away,
spend, signals that wait.
"""

from itertools import count
from pathlib import Path
from typing import Self

from tests.support.agents import Turn, request, spans
from tests.support.openai_server import OpenAiServer
from tests.support.processes import free_ports
from tests.support.sender import send
from tests.support.service import Service

SERVICE = "shop-bot"
SETTINGS = (
    "windows.trace.root_grace=300ms",
    "windows.trace.glance=500ms",
    "windows.session.idle=2s",
    "slo.objective=0.9",
    "judge.attempts=1",
    "judge.sample=0.7",
    "evaluators.helpfulness.enabled=true",
    "judge.price.input=1",
    "judge.price.output=1",
    "judge.budget.usd_per_day=5",
    "judge.budget.calls_per_minute=600",
    "judge.cache=0",
)


class EverythingOn:
    """The service, its judge, and the agent: each `go_on` is one more session of it."""

    def __init__(self, folder: Path) -> None:
        self._judge = OpenAiServer()
        (nobody_listens,) = free_ports(1)
        self.service = Service(
            folder,
            *SETTINGS,
            *self._judge.settings,
            f"sinks.otlp.endpoint=http://127.0.0.1:{nobody_listens}",
        )
        self._sessions = count()

    def __enter__(self) -> Self:
        """Started, and one open trace runs away."""
        self._judge.__enter__()
        try:
            self.service.start()
            *under_way, _ = spans(Turn(service=SERVICE, session="loop", number=0, calls=14))
            send(self.service.grpc, request(SERVICE, under_way))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Ended, both."""
        self.service.__exit__(kind)
        self._judge.__exit__(None, None, None)

    def go_on(self) -> None:
        """One more session: a run of a task, every third one fails. The judge's first answers cannot be read.

        The model call of the session before arrives again under another id, long after its trace has closed.
        """
        number = next(self._sessions)
        self._judge.mode = "garbage" if self._judge.answered < 20 else "good"
        turn = Turn(service=SERVICE, session=f"s-{number}", number=number, fails=number % 3 == 0)
        made = spans(turn)
        made[-1].attributes.add(key="spanwise.task.id").value.string_value = "refund"
        made[-1].attributes.add(key="spanwise.task.success").value.bool_value = not turn.fails
        without_session = spans(Turn(service=SERVICE, session="", number=number))
        send(self.service.grpc, request(SERVICE, made), request(SERVICE, without_session))
        if number >= 3:
            late = spans(Turn(service=SERVICE, session=f"s-{number - 3}", number=number - 3))[0]
            late.span_id = late.span_id[::-1]
            send(self.service.grpc, request(SERVICE, [late]))
