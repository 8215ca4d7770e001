"""The check of an LMDB file: a sound one passes, and no page of a damaged one reaches LMDB."""

import random
from pathlib import Path

import lmdb
import pytest

from collector.base.errors import DataDamaged
from collector.log.disk.lmdb_check import check

PAGE = 4096
MAP = 64 << 20
LEAF, VALUE = 2, 4
"""LMDB's flags of pages."""


def filled(folder: Path, seed: int = 0, *, steps: int = 12) -> Path:
    """An environment with trees of several levels, large values, deletions and free pages."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    with lmdb.open(str(folder), map_size=MAP, max_dbs=4, sync=False) as env:
        trees = [env.open_db(name) for name in (b"a", b"b", b"c")]
        for _ in range(steps):
            with env.begin(write=True) as txn:
                for tree in trees:
                    for _ in range(60):
                        key = chance.randbytes(chance.choice([2, 10, 200]))
                        txn.put(key, chance.randbytes(chance.choice([0, 50, 900, 4080])), db=tree)
                    cursor = txn.cursor(tree)
                    for _ in range(chance.choice([0, 30, 70])):
                        if cursor.set_range(chance.randbytes(2)):
                            cursor.delete()
    return folder / "data.mdb"


def copied(sound: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    copy = folder / "data.mdb"
    copy.write_bytes(sound.read_bytes())
    return copy


def walked(folder: Path) -> int:
    """LMDB reads everything, deletes everything and writes again."""
    with lmdb.open(str(folder), map_size=MAP, max_dbs=4, sync=False) as env:
        trees = [env.open_db(name) for name in (b"a", b"b", b"c")]
        with env.begin(write=True) as txn:
            seen = sum(len(value) for tree in trees for _, value in txn.cursor(tree))
            for tree in trees:
                txn.drop(tree, delete=False)
        with env.begin(write=True) as txn:
            txn.put(b"k", bytes(9000), db=trees[0])
    return seen


@pytest.mark.parametrize("seed", range(12))
def test_a_sound_file_passes_with_every_page_accounted_for(tmp_path: Path, seed: int) -> None:
    file = filled(tmp_path, seed, steps=seed + 1)

    checked = check(tmp_path)

    assert checked.is_whole
    assert not checked.overwritten
    assert 0 < checked.pages + 2 <= file.stat().st_size // PAGE + 1


def test_a_sound_file_passes_whatever_the_numbers_of_its_transactions(tmp_path: Path) -> None:
    """The free pages stand under the numbers of transactions, which ascend as numbers and not as bytes."""
    with lmdb.open(str(tmp_path), map_size=MAP, sync=False) as env:
        for number in range(600):
            with env.begin(write=True) as txn:
                txn.put(b"%d" % (number % 7), bytes(number % 5 * 4000))
            if number % 256 > 250 or number % 256 < 6:
                assert check(tmp_path).is_whole, number
                with env.begin() as reader:  # pages that a reader may need stay in the list
                    with env.begin(write=True) as txn:
                        txn.put(b"more", b"%d" % number)
                    assert reader.id() > 0
                    assert check(tmp_path).is_whole, number


def test_a_list_of_free_pages_of_many_pages_is_sound(tmp_path: Path) -> None:
    """Its tree has branch pages too."""
    with lmdb.open(str(tmp_path), map_size=MAP, sync=False) as env, env.begin() as reader:
        for number in range(700):
            with env.begin(write=True) as txn:
                txn.put(b"k", b"%d" % number)
        assert reader.id() >= 0
        assert env.stat()["entries"] == 1
        assert check(tmp_path).is_whole


@pytest.mark.parametrize("keep", [0, 16])
def test_an_overwritten_page_is_refused_or_hurts_values_alone(tmp_path: Path, keep: int) -> None:
    """Page by page: what passes, LMDB can read, delete and write again."""
    sound = filled(tmp_path / "sound", steps=4)
    pages = sound.stat().st_size // PAGE
    chance = random.Random(keep)
    passed = refused = 0
    for page in range(2, pages):
        file = copied(sound, tmp_path / "damaged")
        with file.open("r+b") as stream:
            stream.seek(page * PAGE + keep)
            stream.write(chance.randbytes(PAGE - keep))
        try:
            check(file.parent)
        except DataDamaged:
            refused += 1
            continue
        passed += 1
        walked(file.parent)
    assert passed > pages // 10
    assert refused > pages // 10


@pytest.mark.parametrize("seed", range(60))
def test_changed_bytes_raise_one_declared_error(tmp_path: Path, seed: int) -> None:
    sound = filled(tmp_path / "sound", seed % 5, steps=3)
    chance = random.Random(seed)
    content = bytearray(sound.read_bytes())
    for _ in range(chance.choice([1, 5, 40])):
        at = chance.randrange(len(content) // 8 if chance.random() < 0.3 else len(content))
        content[at : at + 4] = chance.randbytes(4)
    file = copied(sound, tmp_path / "damaged")
    file.write_bytes(content)

    said = refusal(file.parent)

    assert said == "" or str(file) in said
    assert len(said.splitlines()) <= 1


def refusal(folder: Path) -> str:
    try:
        check(folder)
    except DataDamaged as error:
        return str(error)
    return ""


def test_a_value_whose_header_was_overwritten_is_fixed(tmp_path: Path) -> None:
    file = filled(tmp_path / "sound", steps=4)
    content = bytearray(file.read_bytes())
    headers = [n for n in range(2, len(content) // PAGE) if content[n * PAGE + 10] == VALUE]
    content[headers[0] * PAGE : headers[0] * PAGE + 16] = bytes(16)
    damaged = copied(file, tmp_path / "damaged")
    damaged.write_bytes(content)

    assert check(damaged.parent).overwritten == 1
    assert check(damaged.parent).overwritten == 0
    assert damaged.read_bytes() == file.read_bytes()


def test_a_check_ends_when_its_time_does(tmp_path: Path) -> None:
    filled(tmp_path)
    ticks = iter(range(1_000_000))

    checked = check(tmp_path, monotonic=lambda: next(ticks) * 20.0)

    assert not checked.is_whole


def test_a_page_with_two_uses_is_refused(tmp_path: Path) -> None:
    """LMDB would read one value as another, and give the page away while the second still needs it."""
    file = filled(tmp_path, steps=4)
    content = bytearray(file.read_bytes())
    numbers = [n for n in range(2, len(content) // PAGE) if content[n * PAGE + 10] == VALUE]
    one, other = (number.to_bytes(8, "little") for number in numbers[:2])
    used = [n for n in range(2, len(content) // PAGE) if content[n * PAGE + 10] == LEAF]
    for leaf in used:
        at = content.find(one, leaf * PAGE + 16, (leaf + 1) * PAGE)
        if at > 0:
            content[at : at + 8] = other
    file.write_bytes(content)

    with pytest.raises(DataDamaged, match=f"page {numbers[1]} is used twice"):
        check(tmp_path)
