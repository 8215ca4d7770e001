"""Three members forward from a Kafka log: one is killed, all are restarted, and every kept trace arrives whole."""

import asyncio
import contextlib
import hashlib
import json
import time
from collections import defaultdict
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from collector.otlp.trace_state import threshold_of
from tests.support.fleet import Fleet, send
from tests.support.otlp import body, span, spans_of
from tests.support.otlp_server import Backend, http_backend

pytestmark = [pytest.mark.e2e, pytest.mark.kafka]
SHARE = 0.3
TRACES = 150
PARTITIONS = 6
ROLES = ("receive", "assemble", "score")


def trace_id(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()[:16]


def turn(number: int) -> list[Span]:
    root, child = span(trace_id(number), 1), span(trace_id(number), 2)
    child.parent_span_id = root.span_id
    if number % 5 == 0:
        root.status.code = Status.STATUS_CODE_ERROR
    return [child, root]


def is_kept(number: int) -> bool:
    return number % 5 == 0 or int.from_bytes(trace_id(number)[-7:]) >= threshold_of(SHARE)


def arrived(backend: Backend) -> dict[bytes, list[bytes]]:
    """By trace, the ids of its spans as often as they came."""
    found: dict[bytes, list[bytes]] = defaultdict(list)
    for request in list(backend.requests):
        for each in spans_of(ExportTraceServiceRequest.FromString(request)):
            found[each.trace_id].append(each.span_id)
    return found


async def until_begun(bootstrap: str, group: str) -> None:
    """Until the group has a place in every partition: what was written before is not its own."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    places = 0
    try:
        async with asyncio.timeout(90):
            while places < PARTITIONS:
                with contextlib.suppress(
                    KafkaError
                ):  # a broker that has just begun has no coordinator
                    places = len(await admin.list_consumer_group_offsets(group))
                await asyncio.sleep(0.1)
    finally:
        await admin.close()


@pytest.mark.timeout(300)
async def test_members_that_die_and_restart_lose_no_kept_trace_and_send_no_other(
    tmp_path: Path, kafka: str
) -> None:
    keep = {"share": SHARE, "others": SHARE, "slow": None, "new_versions": 0, "wait": "2s"}
    async with http_backend() as backend:
        forward = {"endpoint": backend.endpoint, "protocol": "http", "keep": keep}
        settings = (f"forward={json.dumps(forward)}",)
        with Fleet(tmp_path, kafka, partitions=PARTITIONS) as fleet:
            members = [fleet.add(f"member-{n}", *ROLES, settings=settings) for n in range(3)]
            for group in ("forward", "forward.keep"):
                await until_begun(kafka, fleet.prefix + group)

            def happens() -> None:
                time.sleep(3)
                members[1].kill()
                members.append(fleet.add("member-3", *ROLES, settings=settings))
                for at in (0, 2):  # a rolling restart
                    assert members[at].stop() == 0
                    members[at].start()

            sent = [body(*turn(number)) for number in range(TRACES)]
            send(
                sent, lambda: members[3 if len(members) > 3 else 0].grpc, during=happens, pause=0.1
            )
            wanted = {trace_id(n) for n in range(TRACES) if is_kept(n)}
            members[3].wait_for("every kept trace", lambda: wanted <= arrived(backend).keys(), 120)
            await asyncio.sleep(3)  # what must not come has had its time
            found = arrived(backend)

    assert found.keys() == wanted
    assert all(set(each) == {(1).to_bytes(8), (2).to_bytes(8)} for each in found.values())
    assert max(map(len, found.values())) <= 3 * 2, (
        "a trace is sent again at most when its owner ends"
    )
