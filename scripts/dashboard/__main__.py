"""`python -m scripts.dashboard [FOLDER]` writes the generated files into helm/; a test fails when one is stale."""

from __future__ import annotations

import sys
from pathlib import Path

from scripts.dashboard.files import files


def main(folder: Path) -> None:
    """Write every file."""
    for name, text in files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "helm")
