"""gRPC messages that never end: no token, no memory; with one, no more than admission gives."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.hostile import bystanders, post
from tests.support.http2 import EXPORT, MAX_CONCURRENT_STREAMS, RawGrpc
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

CONNECTIONS = 2
STREAMS = 24
PART = 12 << 20
ANNOUNCED = 60 << 20
MB = 1_000_000
TOKEN = "correct-horse"
BEARER = {"authorization": f"Bearer {TOKEN}"}


def leave_unfinished(service: Service, path: str, *, owned: ExitStack) -> int:
    """Push parts of many messages through a few connections; how many bytes were taken."""
    taken = 0
    part = bytes(PART)
    for _ in range(CONNECTIONS):
        connection = owned.enter_context(RawGrpc(service.grpc))
        for _ in range(STREAMS):
            stream = connection.open(ANNOUNCED, path=path)
            taken += connection.push(stream, part, within=0.2)
    return taken


@pytest.mark.parametrize("path", [EXPORT, "/grpc.health.v1.Health/Check"])
def test_without_a_token_no_message_is_held(tmp_path: Path, path: str) -> None:
    """Of questions about health, which need no token, a few are read at once."""
    with (
        Service(tmp_path / "data", f"receiver.bearer_tokens=[{TOKEN}]") as service,
        ExitStack() as owned,
    ):
        with bystanders(service, headers=BEARER) as toll:
            taken = leave_unfinished(service, path, owned=owned)

        assert toll.unserved == []
        assert toll.peak < 64 * MB, f"{toll.peak / MB:.0f} MB held of {taken / MB:.0f} MB sent"


def test_unfinished_messages_hold_no_more_than_admission_gives(tmp_path: Path) -> None:
    """Half of `receiver.max_request` from each of many calls: four such requests' worth is what may be in flight."""
    with Service(tmp_path / "data", "receiver.max_request=16MiB") as service, ExitStack() as owned:
        with bystanders(service, senders=False) as toll:
            taken = 0
            part = bytes(8 << 20)
            for _ in range(CONNECTIONS):
                connection = owned.enter_context(RawGrpc(service.grpc))
                for _ in range(STREAMS):
                    stream = connection.open(16 << 20)
                    taken += connection.push(stream, part, within=0.2)

        assert toll.unserved == []
        assert toll.peak < 160 * MB, f"{toll.peak / MB:.0f} MB held of {taken / MB:.0f} MB sent"


def test_unfinished_messages_are_ended_after_the_body_timeout(tmp_path: Path) -> None:
    with (
        Service(tmp_path / "data", "receiver.body_timeout=1s") as service,
        RawGrpc(service.grpc) as connection,
    ):
        stream = connection.open(ANNOUNCED)
        connection.push(stream, bytes(1 << 16), within=0.5)

        for _ in range(50):
            connection.read(0.2)
            if stream in connection.ended or connection.closed:
                break

        assert stream in connection.ended


def test_one_connection_gets_few_streams(tmp_path: Path) -> None:
    with Service(tmp_path / "data") as service, RawGrpc(service.grpc) as connection:
        assert connection.settings[MAX_CONCURRENT_STREAMS] <= 64
        assert post(service.http, b"")[0] == 200
