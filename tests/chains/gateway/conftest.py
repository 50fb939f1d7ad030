"""Gateways of these tests, and the server of a model that they stand before."""

from contextlib import AsyncExitStack

import httpx
import pytest

from tests.chains.fake_openai import served


@pytest.fixture(scope="module")
def upstream(fake):
    """The address of the API of a model's server."""
    with served(fake.app) as url:
        yield f"{url}/v1"


class _WithItsLife(httpx.ASGITransport):
    """Calls an application that begins with the first request and ends with the client."""

    _life = None

    async def handle_async_request(self, request):
        if self._life is None:
            self._life = self.app.router.lifespan_context(self.app)
            await self._life.__aenter__()
        return await super().handle_async_request(request)

    async def aclose(self):
        if self._life is not None:
            await self._life.__aexit__(None, None, None)


@pytest.fixture
async def in_process():
    """Makes clients of gateways in this process; what these have open is closed with the test."""
    async with AsyncExitStack() as stack:

        def client_of(app, **options):
            transport = _WithItsLife(app)
            client = httpx.AsyncClient(transport=transport, base_url="http://gateway", **options)
            stack.push_async_callback(client.aclose)
            return client

        yield client_of
