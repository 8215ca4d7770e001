"""Counts as people say them."""


def amount(count: int, word: str) -> str:
    """`1 turn`, `2 turns`, `1,200 turns`; of a word whose plural only adds an s."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
