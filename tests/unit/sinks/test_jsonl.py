"""The file stays valid JSONL whatever happens to the process, and never grows beyond its share."""

import asyncio
import gzip
import itertools
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from collector.base.errors import Retryable
from collector.sinks.jsonl import JsonlSink, repair
from tests.support.sink_contract import published


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def largest(folder: Path) -> int:
    return max(each.stat().st_size for each in folder.iterdir())


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


async def test_it_rotates_before_the_limit_and_keeps_so_many(tmp_path: Path) -> None:
    path = tmp_path / "signals.jsonl"

    await write(path, *([number] for number in range(9)), max_size=size_of(2) + 2, keep=2)

    assert lines(path) == [published(8).json]
    assert lines(tmp_path / "signals.jsonl.1") == [published(6).json, published(7).json]
    assert lines(tmp_path / "signals.jsonl.2") == [published(4).json, published(5).json]
    assert len(names(tmp_path)) == 3


async def test_a_batch_larger_than_a_file_is_spread(tmp_path: Path) -> None:
    path = tmp_path / "signals.jsonl"

    await write(path, list(range(5)), max_size=size_of(2) + 2, keep=9)

    assert lines(path) == [published(4).json]
    assert largest(tmp_path) <= size_of(2) + 2


async def test_a_signal_above_the_limit_has_a_file_of_its_own(tmp_path: Path) -> None:
    await write(tmp_path / "signals.jsonl", [0, 1], max_size=10, keep=3)

    assert lines(tmp_path / "signals.jsonl") == [published(1).json]
    assert lines(tmp_path / "signals.jsonl.1") == [published(0).json]
    assert not (tmp_path / "signals.jsonl.2").exists()


async def test_keep_zero_keeps_only_the_current_file(tmp_path: Path) -> None:
    await write(tmp_path / "signals.jsonl", [0, 1], max_size=10, keep=0)

    assert names(tmp_path) == ["signals.jsonl"]


@pytest.mark.parametrize("cut", range(0, 40, 7))
async def test_a_torn_last_line_is_cut_off_at_the_start(tmp_path: Path, cut: int) -> None:
    """kill -9 in the middle of a write, at any byte."""
    path = tmp_path / "signals.jsonl"
    await write(path, [0])
    with path.open("ab") as file:
        file.write(published(1).json[:cut])

    await write(path, [1])

    assert lines(path) == [published(0).json, published(1).json]


async def test_a_last_line_that_only_lacks_its_break_is_completed(tmp_path: Path) -> None:
    path = tmp_path / "signals.jsonl"
    path.write_bytes(published(0).json)

    await write(path, [1])

    assert lines(path) == [published(0).json, published(1).json]


def test_a_torn_line_longer_than_a_step_is_found(tmp_path: Path) -> None:
    path = tmp_path / "signals.jsonl"
    path.write_bytes(b"{}\n" + b'{"x": "' + b"y" * (3 << 20))

    repair(path)

    assert path.read_bytes() == b"{}\n"


def test_a_file_that_is_all_torn_becomes_empty(tmp_path: Path) -> None:
    path = tmp_path / "signals.jsonl"
    path.write_bytes(b'{"id"')

    repair(path)
    repair(tmp_path / "absent")

    assert path.read_bytes() == b""


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


async def test_every_signal_that_was_delivered_is_in_some_file_while_others_rotate_them(
    tmp_path: Path,
) -> None:
    """As logrotate does with `create` and `compress`; `copytruncate` loses what comes between its two steps."""
    path = tmp_path / "signals.jsonl"
    has_ended, rotations, count = threading.Event(), 0, 0

    def rotate() -> None:
        nonlocal rotations
        for number in itertools.count():
            moved = path.with_name(f"moved.{number}")
            with suppress(FileNotFoundError):
                path.replace(moved)
                if number % 3:
                    path.touch(0o600)
                moved.with_suffix(f".{number}.gz").write_bytes(gzip.compress(moved.read_bytes()))
                moved.unlink()
                rotations += 1
            if has_ended.wait(0.05):  # a busy machine writes a batch well within it
                return

    sink = JsonlSink(path, max_size=1 << 20, keep=1)
    async with asyncio.TaskGroup() as both:
        both.create_task(asyncio.to_thread(rotate))
        while rotations < 3 or count < 100:
            await sink.deliver([published(count)])
            count += 1
        has_ended.set()
    await sink.close(1.0)

    rotated = [
        gzip.decompress((tmp_path / each).read_bytes()) for each in names(tmp_path) if ".gz" in each
    ]
    now = path.read_bytes() if path.exists() else b""
    found = {line for each in (*rotated, now) for line in each.splitlines()}
    assert found == {published(number).json for number in range(count)}


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
