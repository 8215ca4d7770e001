"""The command `spanwise`: finds the command's file and turns every mistake of the user into one line of stderr.

One file per command under `collector/commands/`, each with its `command`: a function whose docstring is its help, or a
group of them. Only the file of the command that was asked for is imported, so that `--help` and `--version` answer at
once.
"""

import errno
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated

import typer

from collector.base.errors import ConfigError
from collector.base.net import spare_loopback
from collector.base.printable import printable
from collector.base.version import version
from evaluators.errors import EvaluatorError

COMMANDS: Mapping[str, str] = {
    "run": "The service: takes spans, scores them, shows the scores.",
    "demo": "The service, and an agent that a release makes worse.",
    "evaluate": "Score recordings offline.",
    "inspect": "What Spanwise understood of recorded traces, before any score.",
    "evaluators": "List every evaluator: what it needs and what can be set.",
    "validate": "Check the configuration; one line per bad field.",
    "replay": "Score what the log holds again, as after a rubric changed.",
    "doctor": "What your spans lack, whom that stops, and what to set.",
    "compare": "May this release go on? Exit 0 pass, 1 fail, 3 inconclusive.",
    "cases": "Questions that went wrong, as cases for an expectations file.",
    "notify": "Try the targets of notices: a test, and its end.",
    "slo": "Prometheus rules as YAML, with an objective or without.",
    "config": "Print the effective configuration, or its JSON Schema.",
}
"""Name to help, in the order of `--help`. The file is `collector/commands/<name>.py`."""
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What a write says of a disk, a quota or a file that is full; it names no file."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code. 1: the input is wrong. 2: the command line is."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    os.environ.setdefault(
        "GRPC_ENABLE_FORK_SUPPORT", "0"
    )  # read when grpc is imported; we spawn, it only complains
    spare_loopback(os.environ)
    try:
        app = assemble(words)
        _interruptible()
        code = app(words, prog_name="spanwise", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        said = _one_line(error.format_message())
        if said.startswith("Got unexpected extra argument") and ".y" in said:
            said = f"a configuration file goes behind --config; {said}"
        return _print_error(f"spanwise: {said}", error.exit_code)
    except (ConfigError, EvaluatorError) as error:
        return _print_error(str(error), 1)
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # The reader has gone (`| head`); Python must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.filename is None and error.errno not in _NO_ROOM:
            raise
        return _print_error(f"{error.filename or 'what was written'}: {error.strerror}", 1)
    return code if isinstance(code, int) else 0


def assemble(words: Sequence[str]) -> typer.Typer:
    """The application, with the command that `words` asks for and the names of the others."""
    app = typer.Typer(
        name="spanwise",
        help="Scores your AI agents from the OpenTelemetry traces they already send.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_top)
    chosen = next((word for word in words if not word.startswith("-")), None)
    for name, text in COMMANDS.items():
        if name != chosen:
            app.command(name, help=text)(_elsewhere)
            continue
        module = import_module(f"collector.commands.{name}")
        command = module.command
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name, cls=getattr(module, "Parser", None))(command)
    return app


def _interruptible() -> None:
    if threading.current_thread() is not threading.main_thread():
        return  # what calls a command from another has its own handlers
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _top(
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.")
    ] = False,
) -> None:
    if show_version:
        typer.echo(f"spanwise {version()}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _elsewhere() -> None:
    """The placeholder of a command that was not asked for: only its help is shown."""


def _one_line(message: str) -> str:
    text = " ".join(message.split()).rstrip(".?")
    return f"{text}; `spanwise --help` says what is possible"


def _print_error(message: str, code: int) -> int:
    typer.echo(printable(message), err=True)
    return code
