"""Calls that are cancelled at any moment leave no connection of the pool behind."""

import asyncio
import random
from contextlib import suppress

import httpx
import pytest

from chains.gateway.upstream import chunks_of, opened

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"
REQUEST = b"\r\n\r\n"
STEPS = 60
"""Turns of the event loop that a call may take, more than it needs."""


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server that sends three chunks for each request."""
    with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
        while await reader.readuntil(REQUEST):
            writer.write(HEAD)
            for chunk in (b"5\r\nhello\r\n", b"5\r\nworld\r\n", b"0\r\n\r\n"):
                writer.write(chunk)
                await writer.drain()
    writer.close()


async def read(client: httpx.AsyncClient, url: str) -> bytes:
    async with opened(client, client.build_request("GET", url)) as response:
        return b"".join([chunk async for chunk in chunks_of(response)])


async def test_a_call_that_is_cancelled_at_any_moment_frees_its_connection():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    rng = random.Random(1)
    async with server, httpx.AsyncClient() as client:
        pool = client._transport._pool  # what httpx tells of its connections is told nowhere else
        for _ in range(600):
            call = asyncio.ensure_future(read(client, url))
            for _ in range(rng.randrange(STEPS)):
                await asyncio.sleep(0)
            if rng.random() < 0.3:
                await asyncio.sleep(rng.random() * 0.002)
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
        assert await read(client, url) == b"helloworld"
        assert [told for told in map(repr, pool.connections) if "ACTIVE" in told] == []


async def test_a_reply_that_does_not_begin_is_given_up():
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server, httpx.AsyncClient() as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), opened(client, client.build_request("GET", url)):
                pass
        assert client._transport._pool.connections == []
