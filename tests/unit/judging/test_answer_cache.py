import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from collector.judging.answer_cache import NAME, AnswerCache, CachedAnswer
from evaluators.judging.prompt import Answer


def make_entry(owner: str | None = "me", text: str = "yes") -> CachedAnswer:
    answer = Answer(text=text, model="m", input_tokens=1, output_tokens=2, cost_usd=0.5)
    return CachedAnswer(answer=answer, owner=owner)


def test_an_answer_is_its_payers_until_the_verdict_is_written(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, 1 << 20)
    cache.put("d", "m", make_entry())
    assert cache.get("d", "m", "me") == make_entry("me")
    assert cache.get("d", "m", "another") == make_entry(None)

    cache.written("d", "m")
    assert cache.get("d", "m", "me") == make_entry(None)
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


def nonsense(file: Path) -> None:
    file.write_bytes(b"nonsense" * 1000)


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def a_page_of_its_index(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        select = "SELECT rootpage FROM sqlite_schema WHERE name = 'answers_by_key'"
        root = connection.execute(select).fetchone()[0]
    with file.open("r+b") as stream:
        stream.seek((root - 1) * 4096)
        stream.write(b"\xff" * 4096)


@pytest.mark.parametrize("damage", [nonsense, cut_off, a_page_of_its_index])
def test_a_damaged_file_is_begun_again(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    failures: list[Exception] = []
    cache = AnswerCache(tmp_path, 1 << 20)
    for number in range(10):
        cache.put(str(number), "m", make_entry(text="x" * 50_000))
    cache.close()
    damage(tmp_path / NAME)

    cache = AnswerCache(tmp_path, 1 << 20, failures.append)

    assert cache.get("9", "m", "me") is None
    cache.put("d", "m", make_entry())
    assert cache.get("d", "m", "me") is not None
    if damage is a_page_of_its_index:
        assert [type(each) for each in failures] == [sqlite3.DatabaseError]
    cache.close()


def test_a_damaged_answer_is_asked_for_again(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, 1 << 20)
    cache.put("d", "m", make_entry(text="x" * 50_000))
    cache.put("other", "m", make_entry())
    cache.close()
    file = tmp_path / NAME
    content = bytearray(file.read_bytes())
    at = content.index(b"x" * 3_000) + 1_000
    content[at : at + 100] = b"\xff" * 100
    file.write_bytes(content)

    cache = AnswerCache(tmp_path, 1 << 20)

    assert cache.get("d", "m", "me") is None
    assert cache.get("other", "m", "me") is not None
    cache.written("d", "m")
    cache.put("d", "m", make_entry())
    assert cache.get("d", "m", "me") is not None
    cache.close()


def test_the_file_stays_bounded_and_what_is_evicted_makes_room(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, 1 << 20)
    for number in range(400):
        cache.put(str(number), "m", make_entry(text=f"{number}" * 10_000))

    assert cache.get("399", "m", "me") is not None
    assert sum(each.stat().st_size for each in tmp_path.iterdir()) < 6 << 20
    cache.close()


class FullDisk(sqlite3.Connection):
    """A connection whose write transactions find the disk full."""

    def execute(self, sql: str, *given: object) -> sqlite3.Cursor:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error


def test_a_disk_that_fails_costs_no_answer_and_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[Exception] = []
    cache = AnswerCache(tmp_path, 1 << 20, failures.append)
    cache.put("d", "m", make_entry())
    cache.close()
    monkeypatch.setattr(cache, "_connection", FullDisk(":memory:"))

    cache.put("e", "m", make_entry())
    assert [type(each) for each in failures] == [sqlite3.OperationalError]
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
