"""What the main process holds at rest, and which libraries it must never import."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.measure import CACHE, anonymous_bytes
from tests.support.service import ROOT, Service

HEAVY = ("litellm", "numpy", "scipy", "sklearn", "wordllama")
_IMPORTED = """
import json, sys
from collector.app import App
from collector.commands.run import run
from collector.config.tree import Config
App(Config())
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def rest_megabytes() -> float:
    """RssAnon of the main process of a service with every default, in MiB, some seconds after its start."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="spanwise-bench-", dir=CACHE) as folder,
        Service(Path(folder) / "data") as it,
    ):
        time.sleep(2)
        maps = Path(f"/proc/{it.pid}/maps").read_text()
        assert not [name for name in HEAVY if f"/{name}" in maps]
        return anonymous_bytes(it.pid) / (1 << 20)


def heavy_imports() -> list[str]:
    """Which of the heavy libraries a main process with every default has imported."""
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return sorted(set(json.loads(done.stdout)) & set(HEAVY))
