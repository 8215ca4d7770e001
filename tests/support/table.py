"""A table of cases in one test: each item that pytest collects costs every worker some milliseconds."""

import functools
import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

Test = Callable[..., Any]
Row = dict[str, Any]


def for_each(names: str | Sequence[str], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize`, in one test that lists every row that fails.

    All rows have the same fixtures: a test that changes one takes `parametrize`.
    """
    arguments = names.split(",") if isinstance(names, str) else names
    rows: list[Row] = [
        dict(zip(arguments, case if len(arguments) > 1 else (case,), strict=True)) for case in cases
    ]
    assert rows, names

    def fold(test: Test) -> Test:
        async def run_async(*given: Any, **fixtures: Any) -> None:
            failed: list[Exception] = []
            for row in rows:
                with _noted(failed, row):
                    await test(*given, **fixtures, **row)
            _raise(failed, len(rows))

        def run(*given: Any, **fixtures: Any) -> None:
            failed: list[Exception] = []
            for row in rows:
                with _noted(failed, row):
                    test(*given, **fixtures, **row)
            _raise(failed, len(rows))

        folded: Any = functools.wraps(test)(run_async if inspect.iscoroutinefunction(test) else run)
        signature = inspect.signature(test)
        kept = [each for name, each in signature.parameters.items() if name not in arguments]
        folded.__signature__ = signature.replace(parameters=kept)
        return folded

    return fold


@contextmanager
def _noted(failed: list[Exception], row: Row) -> Generator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - `_raise` raises all
        error.add_note(f"row: {row!r}"[:2000])
        failed.append(error)


def _raise(failed: Sequence[Exception], of: int) -> None:
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {of} rows fail", failed)
