import json
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.sinks.jsonl import JsonlSink
from tests.support.sink_contract import SinkContract


class _Folder:
    """A full disk is a limit on file sizes: a write is torn where it stands, as on a real one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def sink(self) -> JsonlSink:
        return JsonlSink(self.path, max_size=1 << 30, keep=1)

    async def received(self) -> list[str]:
        return [json.loads(line)["id"] for line in self.path.read_text().splitlines()]

    async def break_off(self) -> None:
        size = self.path.stat().st_size if self.path.exists() else 0
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, self.limits[1]))

    async def mend(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self.limits)

    def poison(self) -> bytes:
        return b'{"id":\n1}'


class TestJsonlSink(SinkContract):
    @pytest.fixture
    def far_end(self, tmp_path: Path) -> Iterator[_Folder]:
        folder = _Folder(tmp_path / "signals.jsonl")
        yield folder
        resource.setrlimit(resource.RLIMIT_FSIZE, folder.limits)
