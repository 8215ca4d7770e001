"""What aiokafka does on uvloop when a connection has gone, and what ours does."""

import asyncio
import struct

import pytest
import uvloop
from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.metadata import MetadataRequest

from collector.log.kafka.client import heed_lost_connections

VERSIONS = struct.pack(">hihhhhhh", 0, 2, 3, 0, 1, 18, 0, 0)
"""No error; metadata 0 to 1, versions 0."""


async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says which requests it knows, then nothing."""
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    _, _, correlation = struct.unpack_from(">hhi", await reader.readexactly(size))
    writer.write(struct.pack(">ii", 4 + len(VERSIONS), correlation) + VERSIONS)
    await reader.read()
    writer.close()


async def lost() -> AIOKafkaConnection:
    """A connection that has just gone, before its reader learned of it."""
    server = await asyncio.start_server(broker, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    connection = await create_conn(host, port)
    writer = connection._writer
    assert writer is not None
    writer.transport.abort()
    while "closed=True" not in repr(writer.transport):  # noqa: ASYNC110 - one turn of the loop
        await asyncio.sleep(0)
    server.close()
    return connection


def test_a_write_to_it_is_an_error_that_aiokafka_expects() -> None:
    heed_lost_connections()
    heed_lost_connections()

    async def written() -> None:
        connection = await lost()
        with pytest.raises(KafkaConnectionError):
            await connection.send(MetadataRequest([]))
        assert not connection.connected()

    uvloop.run(written())
