"""Many commands in one process of their own: `spanwise` takes a second to import, and a hostile input a millisecond."""

import contextlib
import io
import json
import subprocess
import sys
import traceback
from collections.abc import Sequence

from tests.support.command import Ended
from tests.support.service import ROOT


def spanwise_each(*commands: Sequence[str], timeout: float = 60.0) -> list[Ended]:
    """Run `spanwise ARGUMENTS` for each, one after the other; `timeout` is for all of them."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.command_series"],
        cwd=ROOT,
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [Ended(**each) for each in json.loads(done.stdout)]


def _ended(arguments: list[str]) -> dict[str, int | str]:
    # In the child only: the other tests must not import the command line.
    from collector.commands.cli import main  # noqa: PLC0415

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except Exception:  # noqa: BLE001 - as Python ends a process
            traceback.print_exc()
            code = 1
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


if __name__ == "__main__":
    sys.stdout.write(json.dumps([_ended(each) for each in json.load(sys.stdin)]))
