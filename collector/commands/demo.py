"""`spanwise demo`: the service, and an agent that gets worse: a tool fails, then its answers are polite and wrong."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

import typer
from msgspec.structs import replace
from pydantic import SecretStr

from collector.base.net import bind
from collector.commands.demo_agent import AGENT, NON_ANSWER, POLITELY, SERVICE
from collector.commands.options import Files, Overrides, loaded
from collector.commands.run import run
from collector.config.tree import (
    AgentWindow,
    BudgetConfig,
    Config,
    Grpc,
    Http,
    JudgeConfig,
    JudgeMore,
    ReceiverConfig,
    SessionWindow,
    TraceWindow,
    Windows,
)
from collector.service.app import Endpoints
from evaluators.formulas.past_limits import PastLimits
from evaluators.providers.scripted import fitting

DROPS = PastLimits(own=1_000_000, clears_after=40)
"""One history for all hours, and a drop is over after 40 normal conversations (else 200)."""
WINDOWS = Windows(
    trace=TraceWindow(root_grace=1.0, glance=3.0),
    session=SessionWindow(idle=10.0),
    agent=AgentWindow(settle=5.0, version_silence=180.0),
)
"""Minutes are made of seconds: everything comes from one process, and no customer comes back later."""


NoQuality = Annotated[
    bool,
    typer.Option(
        "--no-quality", help="Without the judge, and the release whose fault it alone can see."
    ),
]


def command(
    config: Files = None, overrides: Overrides = None, no_quality: NoQuality = False
) -> None:
    """`run` with a scripted agent that gets worse and is fixed, in a folder that is removed at the end.

    A last release answers politely and wrongly, which a scripted judge sees. Of the configuration it takes the ports,
    `workers`, and where the page is shown to whom (`admin`): it touches no data, sink or judge of yours.
    """
    children: list[subprocess.Popen[bytes]] = []

    def start_agent(endpoints: Endpoints) -> None:
        _say(endpoints, no_quality=no_quality)
        command = [sys.executable, "-P", "-m", "collector.commands.demo_story"]
        command += [str(endpoints.grpc), endpoints.admin, *(["--no-quality"] if no_quality else [])]
        child = subprocess.Popen(  # noqa: S603 - our own
            command,
            stdin=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is not for it
            env=agents_environment(os.environ),
        )
        children.append(child)

    given = loaded(config, overrides)
    with (
        tempfile.TemporaryDirectory(prefix="spanwise-demo-") as folder,
        nullcontext() if no_quality else scripted_judge() as judge,
    ):
        # A day of the demo is a second: what a first fortnight would only mark is an alarm.
        drops = DROPS if no_quality else replace(DROPS, mark_age=0.0)
        try:
            run(own_config(given, Path(folder), judge), beside=start_agent, drops=drops)
        finally:
            for child in children:
                child.communicate()  # closing its input ends it


def agents_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Without your exporter's settings, tokens and proxies: the agent's spans go to this service alone."""
    return {
        name: value
        for name, value in given.items()
        if not name.startswith("OTEL_") and not name.lower().endswith("_proxy")
    }


def own_config(given: Config, folder: Path, judge: str | None = None) -> Config:
    """The demo's, with the ports, the workers and the admin section that are given; `judge`: its address.

    Its receivers are on loopback: they ask for no token. Of the usual ports those that `spanwise run` beside it holds
    become free ones.
    """
    usual = Config()
    admin, receiver = given.admin, given.receiver
    page = _port(admin.host, admin.port, usual.admin.port)
    grpc = _port("127.0.0.1", receiver.grpc.port, usual.receiver.grpc.port)
    http = _port("127.0.0.1", receiver.http.port, usual.receiver.http.port)
    return Config(
        data_dir=folder,
        workers=given.workers,
        windows=WINDOWS,
        judge=JudgeConfig()
        if judge is None
        else JudgeConfig(
            model="openai/scripted",
            base_url=judge,
            api_key=SecretStr("none"),
            # Without a verdict a session has no agent_reliability: at .25 its drop takes twice as many. Above .5 the
            # judge is busy with the first 200 conversations for longer than they are sent.
            sample=0.5,
            more=JudgeMore(new_version=None),  # each release would be judged as a drop is
            budget=BudgetConfig(calls_per_minute=100_000),  # they cost nothing
        ),
        receiver=ReceiverConfig(grpc=Grpc(port=grpc), http=Http(port=http)),
        admin=admin.model_copy(update={"port": page}),
    )


def _port(host: str, given: int, usual: int) -> int:
    """The port as given, which 0 makes a free one; a port of one's own is not exchanged for another."""
    if given != usual:
        return given
    try:
        bind(host, given).close()
    except OSError:
        return 0
    return given


def _say(endpoints: Endpoints, *, no_quality: bool) -> None:
    usual, page = Windows(), f"http://{endpoints.admin}"
    times = (
        ("a trace closes after its root by", WINDOWS.trace.root_grace, usual.trace.root_grace),
        ("an open trace is looked at after", WINDOWS.trace.glance or 0, usual.trace.glance or 0),
        ("a session's score settles after", WINDOWS.agent.settle, usual.agent.settle),
        ("a session closes after", WINDOWS.session.idle, usual.session.idle),
        (
            "a replaced version ends after",
            WINDOWS.agent.version_silence,
            usual.agent.version_silence,
        ),
    )
    lines = [
        "",
        f"`{AGENT}` of `{SERVICE}` works well, a release makes it worse,",
        f"the next one fixes it{'' if no_quality else ', and a last one answers politely and wrongly'}.",
        f"So that this takes {'two' if no_quality else 'four'} minutes and not days:",
        *(f"  {what:<34}{ours:>3g} s   (else {theirs:g} s)" for what, ours, theirs in times),
        f"  {'a drop is over after':<34}{DROPS.clears_after:>3} normal sessions (else {PastLimits().clears_after})",
        "  all hours of the day are compared with one another",
        f"watch   {page}/",
        f'        watch "curl -s {page}/metrics | grep _detected"',
        f"alert   spanwise slo --page {page} > spanwise.rules.yml",
        f"        for a Prometheus that scrapes {endpoints.admin}: docs/alerting.md",
        "Ctrl-C ends the demo and removes its data.",
        "",
    ]
    sys.stdout.write("".join(f"{each}\n" for each in lines))
    sys.stdout.flush()


GOOD, BAD = 0.9, 0.2  # scores of the demo's judge


@contextmanager
def scripted_judge() -> Generator[str]:
    """Serves /v1/chat/completions on loopback until the end of the context, and knows the wrong answers.

    Its address, for `judge.base_url`.
    """
    with _Server(("127.0.0.1", 0), _Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing where whoever asked has ended: the story has the terminal."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        recording = json.dumps(asked["messages"])
        score = BAD if NON_ANSWER in recording or POLITELY in recording else GOOD
        schema = asked.get("response_format", {}).get("json_schema", {}).get("schema", {})
        message = {
            "role": "assistant",
            "content": json.dumps(fitting(schema, score, "as scripted")),
        }
        answer = {
            "id": "scripted",
            "object": "chat.completion",
            "created": 1,
            "model": asked["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        payload = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Nothing."""
