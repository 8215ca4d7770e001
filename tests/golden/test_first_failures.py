"""Every recording with a failed tool call is pointed at the step before the first one, the others at nothing.

`SPANWISE_CAPTURES` names another folder of recordings.
"""

import pytest

from evaluators.trace.tool_correctness import tool_correctness
from tests.golden.test_captures import FOLDER, STACKS
from tests.support.recordings import traces


@pytest.mark.parametrize("stack", STACKS)
def test_the_step_before_the_first_error(stack: str) -> None:
    for trace in traces(FOLDER / stack):
        score = tool_correctness(trace)
        failed = [call for call in trace.tool_calls if call.error is not None]
        assert ("first failure" in str(score.explanation)) == bool(failed)
        if not failed or not trace.model_calls:
            continue
        first = min(call.start_time_unix_nano for call in failed)
        before = {each.span_id for each in trace.model_calls if each.start_time_unix_nano <= first}
        assert score.evidence[0] in before
