"""Rooms that take in and keep (receive, assemble, score) wait for their disk, and lose nothing that was acknowledged.

While the log cannot be written, senders are asked to come back. An error that such a room does not foresee ends the
process, which can be started again: it reads on from its commits.
"""

from pathlib import Path

import grpc
import pytest

from tests.support.asking import asked, trace_id
from tests.support.faults import KINDS, VARIABLE, switch_on
from tests.support.hostile import post
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(200)]

SETTINGS = ("windows.trace.root_grace=100ms", "embedder.kind=none")


def faulty(folder: Path, switch: Path) -> Service:
    return Service(
        folder, *SETTINGS, module="tests.support.faults", environment={VARIABLE: str(switch)}
    )


def refusal(service: Service, number: int) -> grpc.StatusCode | None:
    """How the trace is refused; None: it is acknowledged."""
    try:
        send(service.grpc, asked("s", "Where?", number=number))
    except grpc.RpcError as error:
        return error.code()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    return None


def test_a_log_that_cannot_be_written_refuses_senders_and_loses_nothing(tmp_path: Path) -> None:
    """With each kind of fault in turn, while traces are open and being scored."""
    switch = tmp_path / "fault"
    acknowledged: set[int] = set()
    with faulty(tmp_path / "data", switch) as service:
        for round_, kind in enumerate(KINDS):
            first = 10 * round_
            for number in range(first, first + 3):
                assert refusal(service, number) is None
                acknowledged.add(number)
            switch_on(switch, ["log"], kind)
            for number in range(first + 3, first + 6):
                code = refusal(service, number)
                assert code in {None, grpc.StatusCode.UNAVAILABLE}, kind
                acknowledged |= {number} if code is None else set()
            assert refusal(service, first + 6) is grpc.StatusCode.UNAVAILABLE, kind
            status, _ = post(service.http, asked("s", "Where?", number=first + 6))
            assert status == 503, kind
            assert service.get("/healthz") is not None
            switch.unlink()
            service.wait_for(
                "it is taken again", lambda n=first + 7: refusal(service, n) is None, 30
            )
            acknowledged.add(first + 7)
            wanted = {trace_id("s", number) for number in acknowledged}
            service.wait_for(
                "all is scored", lambda wanted=wanted: wanted <= service.scored_traces(), 60
            )
        assert service.output.read_text().count("The log cannot be written to") <= len(KINDS)
        assert service.stop() == 0


@pytest.mark.parametrize("place", ["assemble", "score"])
def test_an_error_that_a_room_does_not_foresee_ends_the_process_and_loses_nothing(
    tmp_path: Path, place: str
) -> None:
    switch = tmp_path / "fault"
    acknowledged: set[int] = set()
    with faulty(tmp_path / "data", switch) as service:
        assert refusal(service, 0) is None
        service.wait_for("it is scored", lambda: trace_id("s", 0) in service.scored_traces(), 30)
        switch_on(switch, [place], "bug")
        acknowledged = {number for number in range(1, 5) if refusal(service, number) is None}
        assert service.wait(60) == 1
        output = service.output.read_text()
        assert f"Stage `{place}` failed; the process ends and can be started again" in output

    switch.unlink()
    with faulty(tmp_path / "data", switch) as service:
        wanted = {trace_id("s", number) for number in (0, *acknowledged)}
        service.wait_for("all is scored", lambda: wanted <= service.scored_traces(), 60)
        assert service.stop() == 0


def test_an_error_that_the_receiver_does_not_foresee_fails_its_request_alone(
    tmp_path: Path,
) -> None:
    switch = tmp_path / "fault"
    with faulty(tmp_path / "data", switch) as service:
        switch_on(switch, ["receive"], "bug")
        assert refusal(service, 0) is not None
        assert post(service.http, asked("s", "Where?", number=1))[0] >= 500
        switch.unlink()
        assert refusal(service, 2) is None
        service.wait_for("it is scored", lambda: trace_id("s", 2) in service.scored_traces(), 30)
        assert service.stop() == 0
