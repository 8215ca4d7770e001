"""The table that `make bench` prints: what was measured, its mark, whether it held, and the machine's load."""

import os

_WIDE = 52


def heading(title: str) -> None:
    """A group of rows."""
    print(f"\n{title:<{_WIDE}} {'measured':>18}  {'mark':>9}  {'':>6}  load", flush=True)


def row(what: str, measured: str, mark: str = "", *, held: bool | None = None) -> None:
    """One line; `held` None: there is no mark."""
    verdict = "" if held is None else "held" if held else "MISSED"
    load = os.getloadavg()[0]
    print(f"{what:<{_WIDE}} {measured:>18}  {mark:>9}  {verdict:<6}  {load:4.1f}", flush=True)


def at_most(what: str, value: float, mark: float | None, unit: str = "") -> None:
    """A figure that should not be above its mark; without a mark it is printed for itself."""
    if mark is None:
        row(what, f"{value:.2f}{unit}")
    else:
        row(what, f"{value:.2f}{unit}", f"<= {mark:g}{unit}", held=value <= mark)


def at_least(what: str, value: float, mark: float, unit: str = "") -> None:
    """A figure that should not be below its mark."""
    row(what, f"{value:.2f}{unit}", f">= {mark:g}{unit}", held=value >= mark)
