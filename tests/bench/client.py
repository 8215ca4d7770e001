"""Sends prepared requests from a process of its own and prints one JSON line.

python -m tests.bench.client TARGET FILE --passes N --inflight 16 [--gzip] [--rate SPANS_PER_S]

A request that is refused is sent again, unless `--drop`: what is counted was acknowledged.
"""

import argparse
import asyncio
import itertools
import json
import pickle
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import grpc.aio

from tests.bench.load import SESSION_MARK, TRACE_MARK, Request
from tests.support.sender import EXPORT


def fresh(requests: list[Request], passes: int, base: int) -> Iterator[Request]:
    """Each pass has other trace ids and other sessions."""
    for number in range(base, base + passes):
        mark = (int.from_bytes(TRACE_MARK, "big") ^ number).to_bytes(4, "big")
        session = b"%08x" % (int(SESSION_MARK, 16) ^ number)
        for each in requests:
            body = each.body.replace(TRACE_MARK, mark).replace(SESSION_MARK, session)
            yield Request(body, each.spans)


async def send(arguments: argparse.Namespace, requests: list[Request]) -> dict[str, float]:
    """The whole load; acknowledged spans, seconds, latencies in ms."""
    todo = fresh(requests, arguments.passes, arguments.base)
    if arguments.requests:
        todo = itertools.islice(todo, arguments.requests)
    compression = grpc.Compression.Gzip if arguments.gzip else grpc.Compression.NoCompression
    latencies: list[float] = []
    count = sent_bytes = started = 0
    begin = time.perf_counter()
    async with grpc.aio.insecure_channel(arguments.target, compression=compression) as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(EXPORT)

        async def worker() -> None:
            nonlocal count, sent_bytes, started
            for each in todo:
                started += each.spans
                if arguments.rate:
                    wait = begin + started / arguments.rate - time.perf_counter()
                    await asyncio.sleep(max(0.0, wait))
                while True:
                    sent = time.perf_counter()
                    try:
                        await call(each.body, timeout=60)
                    except grpc.aio.AioRpcError as error:
                        if error.code() is not grpc.StatusCode.UNAVAILABLE:
                            raise
                        if arguments.drop:
                            break
                        await asyncio.sleep(0.2)
                        continue
                    latencies.append(time.perf_counter() - sent)
                    count += each.spans
                    sent_bytes += len(each.body)
                    break

        async with asyncio.TaskGroup() as group:
            for _ in range(arguments.inflight):
                group.create_task(worker())
    latencies.sort()
    latencies = latencies or [0.0]
    return {
        "spans": count,
        "bytes": sent_bytes,
        "seconds": time.perf_counter() - begin,
        "p99_ms": latencies[int(len(latencies) * 0.99)] * 1e3,
    }


def main() -> None:
    """Parse, send, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("file")
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--base", type=int, default=1)
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--inflight", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--gzip", action="store_true")
    parser.add_argument("--drop", action="store_true")
    arguments = parser.parse_args()
    requests: list[Request] = pickle.loads(Path(arguments.file).read_bytes())
    print(json.dumps(asyncio.run(send(arguments, requests))))


if __name__ == "__main__":
    main()
