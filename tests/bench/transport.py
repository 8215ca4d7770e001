"""What every ratio is against: a grpc.aio server on uvloop that takes the bytes and answers at once.

`python -m tests.bench.transport` prints its port.
"""

import asyncio

import grpc
import grpc.aio
import uvloop

from tests.support.sender import EXPORT


async def serve() -> None:
    """Until killed."""

    async def export(_request: bytes, _context: object) -> bytes:
        return b""

    service, _, method = EXPORT.strip("/").partition("/")
    handler = grpc.method_handlers_generic_handler(
        service, {method: grpc.unary_unary_rpc_method_handler(export)}
    )
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 64 << 20)])
    server.add_generic_rpc_handlers([handler])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await asyncio.sleep(600)


if __name__ == "__main__":
    uvloop.run(serve())
