"""`python -m scripts.chart [FOLDER]` writes the generated files of helm/; a test fails when one is stale."""

from pathlib import Path

from scripts.arguments import path_argument
from scripts.chart.examples import renderings
from scripts.chart.files import files
from scripts.chart.places import HELM
from scripts.chart.readme import readme


def main(folder: Path) -> None:
    """Write every file: first what the chart is made of, then what it renders."""
    for made in (files, readme, renderings):
        for name, text in made().items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(path_argument(__doc__, HELM))
