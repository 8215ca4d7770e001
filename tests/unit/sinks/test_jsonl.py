"""The file stays valid JSONL whatever happens to the process, and never grows beyond its share."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from collector.base.errors import ConfigError, Retryable
from collector.config.load import load
from collector.sinks.jsonl import JsonlSink
from tests.support.sink_contract import published


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


async def write(path: Path, *batches: list[int], max_size: int = 1 << 20, keep: int = 1) -> None:
    """What one process delivers, by the records' numbers."""
    sink = JsonlSink(path, max_size=max_size, keep=keep)
    for batch in batches:
        await sink.deliver([published(number) for number in batch])
    await sink.close(1.0)


def size_of(count: int) -> int:
    return count * max(len(published(number).json) + 1 for number in range(9))


async def test_a_value_is_one_line_byte_for_byte(tmp_path: Path) -> None:
    await write(tmp_path / "deep" / "signals.jsonl", [0, 1], [1])

    expected = [published(0).json, published(1).json, published(1).json]
    assert lines(tmp_path / "deep" / "signals.jsonl") == expected


@pytest.mark.parametrize(
    ("batches", "max_size", "keep", "files"),
    [
        ([[n] for n in range(9)], size_of(2) + 2, 2, [[8], [6, 7], [4, 5]]),
        ([[*range(5)]], size_of(2) + 2, 9, [[4], [2, 3], [0, 1]]),
        ([[0, 1]], 10, 3, [[1], [0]]),
        ([[0, 1]], 10, 0, [[1]]),
    ],
    ids=["one by one", "a batch larger than a file", "each above the limit", "none is kept"],
)
async def test_it_rotates_before_the_limit_and_keeps_so_many(
    tmp_path: Path, batches: list[list[int]], max_size: int, keep: int, files: list[list[int]]
) -> None:
    path = tmp_path / "signals.jsonl"

    await write(path, *batches, max_size=max_size, keep=keep)

    assert names(tmp_path) == ["signals.jsonl", "signals.jsonl.1", "signals.jsonl.2"][: len(files)]
    found = [lines(tmp_path / name) for name in names(tmp_path)]
    assert found == [[published(number).json for number in each] for each in files]


@pytest.mark.parametrize(
    ("torn", "whole"),
    [
        *((b"{}\n" + published(1).json[:cut], [b"{}"]) for cut in range(0, 40, 7)),
        (b'{"id": 1}', [b'{"id": 1}']),  # it only lacks its break
        (b'{}\n{"x": "' + b"y" * (3 << 20), [b"{}"]),  # longer than a step
        (b'{"id"', []),
    ],
)
async def test_a_torn_last_line_is_cut_off_at_the_start(
    tmp_path: Path, torn: bytes, whole: list[bytes]
) -> None:
    """kill -9 in the middle of a write, at any byte."""
    path = tmp_path / "signals.jsonl"
    path.write_bytes(torn)

    await write(path, [1])

    assert lines(path) == [*whole, published(1).json]


def replace_folder(path: Path) -> None:
    path.parent.replace(path.parent.with_name("old"))


def link_elsewhere(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("elsewhere.jsonl"))


def cut_meanwhile(path: Path) -> None:
    os.truncate(path, 0)


def move_twice(path: Path) -> None:
    path.replace(path.with_name("older"))
    path.touch()
    path.replace(path.with_name("newer"))


@pytest.mark.parametrize(
    "change",
    [Path.unlink, shutil.rmtree, replace_folder, link_elsewhere, cut_meanwhile, move_twice],
)
async def test_signals_go_into_the_file_at_their_path_whatever_became_of_theirs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, change: Callable[[Path], object]
) -> None:
    path = tmp_path / "folder" / "signals.jsonl"
    sink = JsonlSink(path, max_size=1 << 20, keep=1)
    await sink.deliver([published(0)])
    change(path.parent if change is shutil.rmtree else path)

    await sink.deliver([published(1)])
    await sink.deliver([published(2)])
    await sink.close(1.0)

    assert lines(path) == [published(1).json, published(2).json]
    assert caplog.text.count("was moved, removed or cut") == 1


async def test_a_folder_in_the_place_of_the_file_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "signals.jsonl"
    sink = JsonlSink(path, max_size=1 << 20, keep=1)
    await sink.deliver([published(0)])
    path.unlink()
    path.mkdir()
    with pytest.raises(Retryable):
        await sink.deliver([published(1)])
    path.rmdir()

    await sink.deliver([published(1)])
    await sink.close(1.0)

    assert lines(path) == [published(1).json]


async def test_what_went_into_a_file_that_was_moved_meanwhile_goes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "signals.jsonl"
    sink = JsonlSink(path, max_size=1 << 20, keep=1)
    await sink.deliver([published(0)])
    fsync = os.fsync

    def removed_meanwhile(descriptor: int) -> None:
        fsync(descriptor)
        if path.exists() and lines(path)[-1:] == [published(1).json] and not removed:
            removed.append(path.unlink())

    removed: list[None] = []
    monkeypatch.setattr("collector.sinks.jsonl.os.fsync", removed_meanwhile)
    await sink.deliver([published(1)])
    await sink.close(1.0)

    assert removed
    assert lines(path) == [published(1).json]


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
