"""What the scripts with one optional path take from the command line."""

import argparse
from pathlib import Path


def path_argument(doc: str | None, default: Path) -> Path:
    """The one argument, or the default; `--help` and unknown options end the program, and never name a path."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("path", nargs="?", type=Path, default=default)
    return parser.parse_args().path
