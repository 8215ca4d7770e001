"""The looks at a label set's versions, each beside the one before it. Pure. Stored with the windows.

Which version was before is decided when a version is first seen. A look is taken once, within ten seconds of the
version's 20th, 40th, 80th and 160th session, beside what the other version had then: so a verdict stays, although both
go on and their oldest sessions leave the windows.
"""

from collections.abc import Mapping, Sequence

from collector.records.comparison import before, version_of
from collector.records.windows import VersionLooksRecord, WindowEntry
from evaluators.formulas.release_verdict import looks_of


def look_at(
    versions: Mapping[str, Sequence[WindowEntry]], taken: Mapping[str, VersionLooksRecord]
) -> dict[str, VersionLooksRecord]:
    """By version, the looks that were taken and those that are due; versions without sessions are forgotten."""
    return {
        name: _grown(name, taken.get(name), versions)
        for name, entries in versions.items()
        if entries
    }


def _grown(
    name: str, taken: VersionLooksRecord | None, versions: Mapping[str, Sequence[WindowEntry]]
) -> VersionLooksRecord:
    if taken is None:
        taken = VersionLooksRecord(before(name, versions))
    if taken.baseline is None:
        return taken
    mine, other = (version_of(each, versions.get(each, ())) for each in (name, taken.baseline))
    looks = looks_of(
        mine.scores, other.scores, left_out=mine.left_out, taken=taken.looks, clumped=True
    )
    return VersionLooksRecord(taken.baseline, looks)
