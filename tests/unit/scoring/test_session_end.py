"""What the record of a session that closed holds for third parties' evaluators."""

import pytest

from collector.records.codec import encode
from collector.scoring import session_end
from collector.scoring.session_end import newest_turns
from tests.support.evaluating import a_turn


def test_a_record_holds_the_newest_turns_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [a_turn(f"{number:032x}", number, {}) for number in range(10)]
    monkeypatch.setattr(session_end, "TURNS_SIZE", sum(len(encode(each)) for each in turns[7:]))

    assert newest_turns(turns) == tuple(turns[7:])
    assert newest_turns(turns[8:]) == tuple(turns[8:])
    assert newest_turns([]) == ()
