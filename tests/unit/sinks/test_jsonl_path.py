"""A path at which no file can ever stand is refused at the start; its sink would try it again for ever."""

import os
from pathlib import Path

import pytest

from collector.base.errors import ConfigError
from collector.config.load import load
from collector.sinks.jsonl import JsonlSink


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (".", "is a folder; name a file"),
        ("link", "is a folder; name a file"),
        ("pipe", "is a device or a pipe"),
        ("/dev/null", "is a device or a pipe"),
        ("file/signals.jsonl", "is not a folder"),
        ("file/more/signals.jsonl", "is not a folder"),
    ],
)
async def test_it_is_named(tmp_path: Path, path: str, why: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    os.mkfifo(tmp_path / "pipe")
    config = load([], {}, [f"sinks.jsonl.path={tmp_path / path}"])
    with pytest.raises(ConfigError, match=rf"^sinks\.jsonl\.path: .*{why}"):
        JsonlSink.configured(config)
    line = await JsonlSink.reachable(config)
    assert line is not None
    assert line.startswith("sinks.jsonl.path: ")
    assert why in line


def test_so_is_the_default_one(tmp_path: Path) -> None:
    (tmp_path / "signals.jsonl").mkdir()
    with pytest.raises(ConfigError, match=r"^sinks\.jsonl\.path: .* is a folder"):
        JsonlSink.configured(load([], {}, [f"data_dir={tmp_path}"]))


def test_what_can_be_made_is_taken(tmp_path: Path) -> None:
    config = load([], {}, [f"sinks.jsonl.path={tmp_path}/new/folder/signals.jsonl"])
    assert JsonlSink.configured(config) is not None
