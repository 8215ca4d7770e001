"""How large an installation from the lock file is, by distribution: `python -m scripts.sizes`.

Counted are the files that each distribution's own list names, and the bytecode that stands beside them here.
"""

import re
import sys
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LIMIT = 450
"""MB that the distributions of the lock file take at most, with all their bytecode."""
SHOWN = 4.0
"""MB from which a distribution has a row of its own."""
_ENTRY = re.compile(r"^(\S+)==(\S+).*\n((?:    .*\n)*)", re.MULTILINE)
_VIA = re.compile(r"^    #(?: via)? +(?!via$)([a-z][a-z0-9-]+)", re.MULTILINE)
_WHAT_FOR = {
    "setuptools": "`make install` alone",
}


class Size(NamedTuple):
    """One distribution."""

    name: str
    version: str
    megabytes: float
    via: tuple[str, ...]
    """What asks for it; spanwise is one of them."""


def locked(text: str) -> dict[str, tuple[str, ...]]:
    """The distributions of a lock file, and what asks for each."""
    return {
        name: tuple(dict.fromkeys(_VIA.findall(rest))) for name, _, rest in _ENTRY.findall(text)
    }


def sizes(lock: Path = ROOT / "locks" / "requirements.lock") -> list[Size]:
    """The largest first; what this platform does not need is left out."""
    found: list[Size] = []
    for name, via in locked(lock.read_text(encoding="utf-8")).items():
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        size = sum(_bytes(Path(str(file.locate()))) for file in distribution.files or ())
        found.append(Size(name, distribution.version, size / 1e6, via))
    return sorted(found, key=lambda each: -each.megabytes)


def _bytes(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


def table(found: list[Size]) -> str:
    """As it stands in docs/install.md."""
    large = [each for each in found if each.megabytes >= SHOWN]
    rest = found[len(large) :]
    rows = [
        *((each.name, each.megabytes, _why(each)) for each in large),
        (f"{len(rest)} others", sum(each.megabytes for each in rest), ""),
        ("**in all**", sum(each.megabytes for each in found), ""),
    ]
    lines = ["| distribution | MB | asked for by |", "|---|---|---|"]
    return "\n".join(
        [*lines, *(f"| {name} | {size:.0f} | {why} |" for name, size, why in rows), ""]
    )


def _why(size: Size) -> str:
    return _WHAT_FOR.get(size.name, ", ".join(size.via))


if __name__ == "__main__":
    sys.stdout.write(table(sizes()))
