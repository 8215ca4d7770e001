"""The first lines that run of the command `spanwise`, before anything is imported that takes time.

From a shell, `spanwise` begins at `main`, as does `python -m collector.commands.start`.
"""

import os
import signal
import sys

_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def begin() -> None:
    """Import nothing from the working directory, and let Ctrl-C end the process at once until a command begins.

    SIGTERM and SIGHUP do too, all three also in the first process of a container. An interrupt in the middle of an
    import would be shown as a traceback, of this module or of any that it imports.
    """
    own = os.path.abspath(f"{__file__}/../../..")  # noqa: PTH100 - pathlib takes its time
    if not sys.flags.safe_path and sys.path[0] != own and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109
        del sys.path[0]
    if os.path.expanduser("~") == "~":  # noqa: PTH111 - a uid without an entry: libraries ask for a home as they begin
        os.environ["HOME"] = "/"
    if os.getpid() == 1:  # the kernel keeps from it every signal without a handler
        for number in _ENDS:
            signal.signal(number, _end)
    # the image's entry point blocks them until here
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _end(number: int, _frame: object) -> None:
    os._exit(128 + number)


def main() -> int:
    begin()
    from collector.commands.cli import main as command  # noqa: PLC0415

    return command()


if __name__ == "__main__":
    sys.exit(main())
