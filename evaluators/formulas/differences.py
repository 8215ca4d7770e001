"""What differs between the sessions before a moment and those since: users, models, tools, words and more. Pure.

A difference is not a cause: tenants, models and words that come with a drop cannot be distinguished from chance well
enough to be named as its explanation (docs/alerting.md). They are listed to be looked at.

Source: Spanwise, measured on recordings with known faults (docs/alerting.md).
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import sqrt
from typing import Literal, NamedTuple

Kind = Literal["version", "model", "user", "attribute", "tool", "word"]
Fact = tuple[Kind, str]
"""What can be said of a session: it is of this version, uses this tool, its question holds this word."""

CLEAR = 4.0  # standard errors from which on a share differs by more than chance, with a few thousand words looked at
LEAST = 5  # sessions of a side, and those with it on the side that has more of them
MOST = 5  # differences that are listed
MOST_WORDS = 2  # words among them: where questions change, many words do
WORDS = 64  # words of a session that are looked at
LONGEST = 64  # characters of a value
_WORD = re.compile(r"[^\W\d_]{3,}")
_TEXT = 512
"""Characters of a question in which words are looked for."""


class Difference(NamedTuple):
    kind: Kind
    value: str
    before: float  # the share of sessions that had it, 0 to 1
    since: float


def facts(
    *,
    versions: Iterable[str | None],
    models: Iterable[str],
    users: Iterable[str | None],
    attributes: Iterable[Mapping[str, str]],
    tools: Iterable[str],
    questions: Iterable[str | None],
) -> frozenset[Fact]:
    found: set[Fact] = {("version", each) for each in versions if each}
    found |= {("model", each[:LONGEST]) for each in models if each}
    found |= {("user", each[:LONGEST]) for each in users if each}
    for each in attributes:
        found |= {("attribute", f"{key}={value}"[:LONGEST]) for key, value in each.items()}
    found |= {("tool", each[:LONGEST]) for each in tools if each}
    words = dict.fromkeys(chain.from_iterable(map(words_of, questions)))
    found |= {("word", each) for each in islice(words, WORDS)}
    return frozenset(found)


def words_of(question: str | None) -> Iterator[str]:
    """The words of a question by which it is compared: of three letters or more, in lower case."""
    return (match[0][:LONGEST] for match in _WORD.finditer((question or "")[:_TEXT].lower()))


def differences(
    before: Sequence[Collection[Fact]], since: Sequence[Collection[Fact]]
) -> list[Difference]:
    """What clearly more or fewer of the sessions have since, the clearest first; at most MOST."""
    if min(len(before), len(since)) < LEAST:
        return []
    had, have = (Counter(fact for each in side for fact in each) for side in (before, since))
    found: list[tuple[float, Difference]] = []
    for kind, value in had.keys() | have.keys():
        counts = had[kind, value], have[kind, value]
        z = _standard_errors(counts, (len(before), len(since)))
        shares = counts[0] / len(before), counts[1] / len(since)
        if z >= CLEAR and counts[shares[1] > shares[0]] >= LEAST:
            found.append((z, Difference(kind, value, *shares)))
    found.sort(key=lambda each: (-each[0], each[1]))
    return _worth_listing([each for _, each in found])


def _worth_listing(found: Sequence[Difference]) -> list[Difference]:
    """What more sessions have says what fewer have: of a kind the latter is listed where it is alone."""
    risen = {each.kind for each in found if each.since > each.before}
    words = [each for each in found if each.kind == "word" and each.since > each.before]
    listed = (
        each
        for each in found
        if (each.since > each.before or each.kind not in risen)
        and (each.kind != "word" or each in words[:MOST_WORDS])
    )
    return list(islice(listed, MOST))


def _standard_errors(counts: tuple[int, int], sizes: tuple[int, int]) -> float:
    """How far two shares are apart, with Yates' correction: few sessions on a side are not more than they are."""
    apart = abs(counts[0] / sizes[0] - counts[1] / sizes[1])
    both = sum(counts) / sum(sizes)
    scale = 1 / sizes[0] + 1 / sizes[1]
    spread = sqrt(both * (1 - both) * scale)
    return max(0.0, apart - scale / 2) / spread if spread else 0.0
