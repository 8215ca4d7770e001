"""Everything that the file of an index says, unpacked."""

import sqlite3
from contextlib import closing
from pathlib import Path

import zstandard


def index_content(folder: Path) -> bytes:
    """All values of all tables."""
    with closing(sqlite3.connect(folder / "index.sqlite")) as connection:
        about = dict(connection.execute("SELECT name, value FROM about"))
        known = zstandard.ZstdCompressionDict(
            about["dictionary"], dict_type=zstandard.DICT_TYPE_RAWCONTENT
        )
        unpack = zstandard.ZstdDecompressor(dict_data=known).decompress
        said: list[bytes] = []
        for table in ("agents", "sessions", "traces", "signals"):
            for row in connection.execute(f"SELECT * FROM {table}"):
                said += [unpack(each) for each in row if isinstance(each, bytes)]
                said.append(repr([each for each in row if not isinstance(each, bytes)]).encode())
        connection.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, texts, row)")
        said += [word.encode() for (word,) in connection.execute("SELECT term FROM words")]
    return b"\n".join(said)
