from dataclasses import replace

import msgspec

from collector.records.codec import encode
from collector.records.trace_views import decode_work
from collector.records.traces import WorkRecord
from collector.scoring.session_end import unscored_turn
from collector.scoring.session_work import ranked_work
from collector.scoring.sliding_window import SlidingWindow
from evaluators.resources import WINDOW
from tests.support.scoring_fakes import CLOSED, make_record, rules, summarised

LATEST = (1 << 64) - 1


def test_a_session_that_ends_at_the_end_of_time_has_a_record() -> None:
    record = make_record("t", start=0)
    trace = replace(record.trace, start_time_unix_nano=1, end_time_unix_nano=LATEST)
    window = SlidingWindow(max_traces=10, max_age=1e6, history=WINDOW, used=[(), ()])
    record = msgspec.structs.replace(record, trace=trace)
    window.place(unscored_turn(summarised(record), service="bot", session_id="s", offset=0))

    (work,) = ranked_work(replace(rules(), ranks=True), window, None, CLOSED, ())

    decoded = decode_work(encode(work))
    assert isinstance(decoded, WorkRecord)
    assert decoded.ended == LATEST
