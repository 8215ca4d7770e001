"""What every ratio is against: a grpc.aio server on uvloop that takes the bytes and answers at once.

python -m tests.bench.transport PORT
"""

import asyncio
import sys

import grpc
import grpc.aio
import uvloop


async def serve(port: int) -> None:
    """Until killed."""

    async def export(_request: bytes, _context: object) -> bytes:
        return b""

    handler = grpc.method_handlers_generic_handler(
        "opentelemetry.proto.collector.trace.v1.TraceService",
        {"Export": grpc.unary_unary_rpc_method_handler(export)},
    )
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 64 << 20)])
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await asyncio.sleep(600)


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
