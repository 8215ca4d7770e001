"""What a pattern out of a trace may cost: an upper bound, found without running it."""

import re

ATTEMPTS = 1 << 17  # attempts of one pattern on one text; some milliseconds of Python's engine
_ENDLESS = 1 << 40  # ways of a pattern that may take exponential time; sums of ways end there
# Groups that repeat, back-references and extensions can take exponential time.
_COSTLY = re.compile(r"\)[*+{?]|\\\d|\(\?")
_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<mark>[(|)])"
    r"|(?P<repeat>[*+?]|\{(?P<least>\d*)(?P<to>,?)(?P<most>\d*)\})[?+]?",
    re.DOTALL,
)


def attempts(pattern: str, length: int) -> int:
    """In how many ways a backtracking engine may try the pattern on a text of so many characters, at most 2**40.

    Each repeat multiplies by the counts it can take, each group by the ways of its alternatives, and a pattern that
    is not anchored at its beginning by the places where it can begin.
    """
    if _COSTLY.search(pattern):
        return _ENDLESS
    groups = [
        (0, 1)
    ]  # of each open group: the ways of its complete alternatives, and of the one being read
    for token in _TOKEN.finditer(pattern):
        known, ways = groups.pop()
        if token["mark"] == "(":
            groups += [(known, ways), (0, 1)]
        elif token["mark"] == "|":
            groups.append((min(known + ways, _ENDLESS), 1))
        elif token["mark"] == ")" and groups:
            outer, before = groups.pop()
            groups.append((outer, min(before * (known + ways), _ENDLESS)))
        else:
            groups.append((known, min(ways * _counts(token, length), _ENDLESS)))
    known, ways = groups[0]
    begins = 1 if pattern.startswith(("^", r"\A")) and not known else length + 1
    return min((known + ways) * begins, _ENDLESS)


def _counts(token: re.Match[str], length: int) -> int:
    if token["repeat"] is None:
        return 1
    if token["repeat"] == "?":
        return 2
    if token["repeat"] in "*+" or (token["to"] and not token["most"]):
        return length + 1
    least, most = int(token["least"] or 0), int(token["most"] or token["least"] or 0)
    return min(max(most - least, 0), length) + 1
