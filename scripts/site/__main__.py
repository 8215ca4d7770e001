"""`make docs`: the site below build/site. Nothing is fetched; a link that leads nowhere is an error."""

import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import build_main

from scripts.arguments import path_argument
from scripts.site.stage import ROOT, stage


def main(folder: Path) -> int:
    """Build it; the exit code."""
    pages, site = folder / "pages", folder / "site"
    shutil.rmtree(pages, ignore_errors=True)
    stage(pages)
    code = build_main(["-q", "-W", "--keep-going", "-b", "html", str(pages), str(site)])
    if code == 0:
        sys.stdout.write(f"the site is {site / 'index.html'}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(path_argument(__doc__, ROOT / "build")))
