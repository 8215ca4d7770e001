from __future__ import annotations

from pathlib import Path
from typing import Any

import lmdb
import pytest

from collector.judging.answer_cache import AnswerCache, CachedAnswer


def make_entry(owner: str | None = "me", text: str = "yes") -> CachedAnswer:
    return CachedAnswer(
        text=text, model="m", input_tokens=1, output_tokens=2, cost_usd=0.5, owner=owner
    )


def test_an_answer_is_its_payers_until_the_verdict_is_written(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, 1 << 20)
    cache.put("d", "m", make_entry())
    mine, theirs = cache.get("d", "m", "me"), cache.get("d", "m", "another")
    assert mine is not None
    assert mine.owner == "me"
    assert theirs is not None
    assert theirs.owner is None

    cache.written("d", "m")
    mine = cache.get("d", "m", "me")
    assert mine is not None
    assert mine.owner is None
    cache.close()


def test_off_keeps_only_what_a_crash_must_find_again(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, 0)
    cache.put("d", "m", make_entry())
    assert cache.get("d", "m", "another") is None
    assert cache.get("d", "m", "me") is not None
    cache.written("d", "m")
    assert cache.get("d", "m", "me") is None
    cache.close()


def test_answers_survive_the_process_and_the_oldest_go_first(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, 1 << 20)
    for number in range(40):
        cache.put(str(number), "m", make_entry(text="x" * 50_000))
    cache.close()
    cache = AnswerCache(tmp_path, 1 << 20)
    held = [number for number in range(40) if cache.get(str(number), "m", "me") is not None]
    assert held == list(range(40 - len(held), 40))
    assert 15 <= len(held) <= 21
    cache.close()


def test_one_that_is_no_cache_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"nonsense" * 1000)
    cache = AnswerCache(tmp_path, 1 << 20)
    cache.put("d", "m", make_entry())
    assert cache.get("d", "m", "me") is not None
    cache.close()


def test_one_that_is_cut_off_is_begun_anew(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, 1 << 20)
    for number in range(10):
        cache.put(str(number), "m", make_entry(text="x" * 50_000))
    cache.close()
    file = tmp_path / "data.mdb"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])

    cache = AnswerCache(tmp_path, 1 << 20)

    assert cache.get("9", "m", "me") is None
    cache.put("d", "m", make_entry())
    assert cache.get("d", "m", "me") is not None
    cache.close()


def test_a_damaged_answer_is_asked_for_again(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, 1 << 20)
    cache.put("d", "m", make_entry(text="x" * 50_000))
    cache.put("other", "m", make_entry())
    cache.close()
    file = tmp_path / "data.mdb"
    content = bytearray(file.read_bytes())
    at = content.index(b"x" * 5_000) // 4096 * 4096 + 16
    content[at : at + 100] = b"\xff" * 100
    file.write_bytes(content)

    cache = AnswerCache(tmp_path, 1 << 20)

    assert cache.get("d", "m", "me") is None
    assert cache.get("other", "m", "me") is not None
    cache.written("d", "m")
    cache.put("d", "m", make_entry())
    assert cache.get("d", "m", "me") is not None
    cache.close()


def test_one_whose_own_state_is_damaged_is_begun_anew(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, 1 << 20)
    cache.put("d", "m", make_entry())
    cache.close()
    file = tmp_path / "data.mdb"
    file.write_bytes(file.read_bytes().replace(b"\xa6oldest", b"\xff\xff\xff\xff\xff\xff\xff"))

    cache = AnswerCache(tmp_path, 1 << 20)

    assert cache.get("d", "m", "me") is None
    cache.put("d", "m", make_entry())
    assert cache.get("d", "m", "me") is not None
    cache.close()


class FullDisk:
    """An environment whose write transactions find the disk full."""

    def begin(self, *, write: bool) -> Any:
        raise lmdb.DiskError("mdb_txn_commit: No space left on device")

    def close(self) -> None:
        pass


def test_a_disk_that_fails_costs_no_answer_and_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[Exception] = []
    cache = AnswerCache(tmp_path, 1 << 20, failures.append)
    cache.put("d", "m", make_entry())
    cache.close()
    monkeypatch.setattr(cache, "_env", FullDisk())

    cache.put("e", "m", make_entry())
    assert [type(each) for each in failures] == [lmdb.DiskError]
    cache.put("f", "m", make_entry())
    assert cache.get("d", "m", "me")
    assert cache.get("f", "m", "me")
    assert cache.get("e", "m", "me") is None
    cache.close()


def test_a_folder_that_cannot_be_used_is_a_cache_without_answers(tmp_path: Path) -> None:
    failures: list[Exception] = []
    (tmp_path / "file").write_text("")
    cache = AnswerCache(tmp_path / "file" / "cache", 1 << 20, failures.append)

    cache.put("d", "m", make_entry())
    cache.written("d", "m")
    assert cache.get("d", "m", "me") is None
    assert len(failures) == 3
    cache.close()
