"""`spanwise run`: the service, until SIGTERM, SIGHUP or Ctrl-C."""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import uvloop

from collector.base.cores import usable_cores
from collector.base.errors import SpanwiseError
from collector.base.files import keep_private
from collector.base.printable import log_to_stderr, one_line
from collector.base.supervisor import leaves
from collector.commands.options import Files, Overrides, Plugins, loaded
from collector.config.tree import Config
from collector.doctor.about import about
from collector.service.app import App, Endpoints
from evaluators.formulas.past_limits import PastLimits

_log = logging.getLogger(__name__)
GRACE = 40.0
"""Seconds that a stop takes at most after `receiver.stop_delay`; the deployments in the docs give it 45."""


def command(config: Files = None, overrides: Overrides = None, plugins: Plugins = None) -> None:
    """The service. Without configuration: everything on loopback, data in ./spanwise-data."""
    run(loaded(config, overrides, plugins))


def run(
    config: Config,
    *,
    beside: Callable[[Endpoints], None] | None = None,
    drops: PastLimits | None = None,
) -> None:
    """Serve until asked to stop. `beside` is called once everything is bound (the demo starts its agent there).

    `drops`: how scores are compared with their own past, where that differs from the default.

    Raises:
        ConfigError: a port is taken, the data folder is in use, or anything else that only the user can fix.
    """
    log_to_stderr(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    keep_private(config.data_dir)
    if (cores := usable_cores()) <= config.worker_count > 1:
        _log.warning("workers: %d and the main process share %d cores.", config.worker_count, cores)

    def ready(endpoints: Endpoints) -> None:
        say(endpoints, config)
        if beside is not None:
            beside(endpoints)

    try:
        grace = GRACE + (config.receiver.stop_delay or 0.0)
        # Until `_serve` answers it: an interrupt while the event loop is made would leave that open. It is not blocked,
        # as it would then reach another thread (the demo's judge has one), and be raised in this one all the same.
        interrupted = threading.Event()
        signal.signal(signal.SIGINT, lambda _signal, _frame: interrupted.set())
        uvloop.run(_serve(App(config, drops=drops, about=about), ready, grace, interrupted))
    except* SpanwiseError as group:
        raise next(leaves(group)) from None


def say(endpoints: Endpoints, config: Config) -> None:
    """One line per endpoint, and the commands that send something: over gRPC, and over HTTP."""
    scheme = "http" if config.receiver.tls is None else "https"
    lines: list[tuple[str, str]] = []
    if endpoints.grpc is not None and endpoints.http is not None:
        lines += [
            ("gRPC", f"{endpoints.grpc}"),
            ("HTTP", f"{scheme}://{endpoints.http}{config.receiver.http.paths[0]}"),
        ]
    lines += [
        ("page", f"http://{endpoints.admin}/"),
        ("metrics", f"http://{endpoints.admin}/metrics"),
    ]
    if "publish" in config.roles and config.sinks.jsonl is not None:
        path = config.sinks.jsonl.path or config.data_dir / "signals.jsonl"
        lines.append(("signals", one_line(str(path))))
    text = "".join(f"{name:<8} {where}\n" for name, where in lines)
    if endpoints.grpc is not None and endpoints.http is not None:
        grpc, http = (int(x.rpartition(":")[2]) for x in (endpoints.grpc, endpoints.http))
        both = config.receiver.exporters((grpc, http))
        for protocol, settings in zip(("gRPC", "HTTP"), both, strict=True):
            # A terminal of 80 cells leaves each line whole.
            variables = settings.replace(" ", " \\\n    ")
            text += f"send over {protocol}:\n    {variables} python my_agent.py\n"
    sys.stdout.write(text)
    sys.stdout.flush()


def _end_for_good(grace: float) -> None:
    """End the process after its grace, whatever still holds a room: what is unwritten waits in the log."""
    time.sleep(grace)
    sys.stderr.write(
        f"spanwise: the stop took longer than {grace:.0f} s; what is unwritten waits in the log\n"
    )
    sys.stderr.flush()
    os._exit(1)


async def _serve(
    app: App, ready: Callable[[Endpoints], None], grace: float, interrupted: threading.Event
) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP. SIGINT, and SIGTERM a second time, ends `receiver.stop_delay`.

    SIGHUP comes when the terminal is closed; under nohup it is ignored, and stays so.
    """
    stopping, at_once = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if stopping.is_set():
            at_once.set()
            return
        stopping.set()
        threading.Thread(target=_end_for_good, args=(grace,), name="grace", daemon=True).start()

    def interrupt() -> None:
        at_once.set()
        stop()

    loop.add_signal_handler(signal.SIGTERM, stop)
    loop.add_signal_handler(signal.SIGINT, interrupt)
    if interrupted.is_set():
        interrupt()
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, stop)
    await app.run(stopping, ready, at_once=at_once)
