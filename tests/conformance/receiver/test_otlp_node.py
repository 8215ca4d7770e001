"""The real Node exporters, gRPC, HTTP/protobuf and HTTP/JSON, against the receiver (G2, H3, H5, H8, J5).

They are installed from the lock file beside tests/support/node/export.cjs. Without node or npm these tests skip;
SPANWISE_REQUIRE_NODE=1 makes that a failure.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from collector.base.errors import LogFull
from tests.support.processes import installed
from tests.support.receiving import Served, serving

SUPPORT = Path(__file__).parents[2] / "support"


@pytest.fixture(scope="session")
def exporter() -> Path:
    """The script, beside its installed packages."""
    return installed("node", "the Node exporters are") / "export.cjs"


@pytest.mark.parametrize(("folder", "fewest"), [("node", 5), ("axe", 2)])
def test_a_lock_names_no_host(folder: str, fewest: int) -> None:
    lock = json.loads((SUPPORT / folder / "package-lock.json").read_text())
    packages: dict[str, Any] = lock["packages"]

    assert len(packages) >= fewest
    assert [name for name, package in packages.items() if "resolved" in package] == []


async def send(
    script: Path, served: Served, protocol: str, *, compression: str = "none", spans: int = 3
) -> int:
    """Run the exporter; 0 = it reports success."""
    url = f"http://{served.target}" if protocol == "grpc" else served.url
    node = await asyncio.create_subprocess_exec(
        *("node", str(script), protocol, url, compression, str(spans)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(100):
            out, errors = await node.communicate()
    finally:
        if node.returncode is None:
            node.kill()
            await node.wait()
    assert out, errors.decode()
    return json.loads(out)["code"]


@pytest.mark.process
@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("protocol", ["grpc", "proto", "json"])
async def test_every_node_exporter_reaches_us(
    exporter: Path, protocol: str, compression: str
) -> None:
    """G2, H3, H5 (Node always sends chunked), J5 (large integers come as numbers)."""
    async with serving() as served:
        code = await send(exporter, served, protocol, compression=compression)

        transport = "grpc" if protocol == "grpc" else "http"
        spans = {span.name: span for span in served.log.spans()}
        values = {a.key: a.value for a in spans["step 1"].attributes}
        assert code == 0
        assert set(spans) == {"root", "step 1", "step 2"}
        assert len({span.trace_id for span in spans.values()}) == 1
        assert int(spans["root"].kind) == 2
        assert values["large.int"].int_value == 9007199254740991
        assert values["text"].string_value == "ümläut"
        assert [v.string_value for v in values["list"].array_value.values] == ["a", "b"]
        assert served.count(transport, "accepted") == 3


@pytest.mark.process
@pytest.mark.parametrize("protocol", ["proto", "json"])
async def test_the_node_http_exporters_try_again_after_503(exporter: Path, protocol: str) -> None:
    """H8: Retry-After is waited for."""
    async with serving() as served:
        served.log.write_failures = [LogFull("full")]

        code = await send(exporter, served, protocol)

        first, second = served.log.arrivals
        assert code == 0
        assert len(served.log.spans()) == 3
        assert second - first >= 0.9


@pytest.mark.process
async def test_a_relieved_log_takes_what_node_sent_in_parallel(exporter: Path) -> None:
    """G5, H3: all three at once."""
    async with serving() as served:
        sending = [send(exporter, served, each) for each in ("grpc", "proto", "json")]
        async with served.holding(*sending) as sent:
            pass

        assert [task.result() for task in sent] == [0, 0, 0]
        assert len(served.log.spans()) == 9
