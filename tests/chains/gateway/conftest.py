"""Gateways of these tests, in this process, before a scripted model's server."""

from contextlib import AsyncExitStack, ExitStack

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app
from guardrail import STRICT, GuardrailConfig
from tests.chains.conftest import scripted_guard


@pytest.fixture
def guarded():
    """Makes guardrails with a scripted judge, closed with the test."""
    with ExitStack() as stack:

        def make(policy=STRICT, *, path=None, **options):
            config = GuardrailConfig(policy=policy, log=path)
            return stack.enter_context(scripted_guard(config=config, **options))

        yield make


@pytest.fixture
def log_path(tmp_path):
    return tmp_path / "scores.sqlite"


class _WithLifespan(httpx.ASGITransport):
    """Calls an application, whose lifespan is that of the client."""

    _lifespan = None

    async def handle_async_request(self, request):
        if self._lifespan is None:
            self._lifespan = self.app.router.lifespan_context(self.app)
            await self._lifespan.__aenter__()
        return await super().handle_async_request(request)

    async def aclose(self):
        if self._lifespan is not None:
            await self._lifespan.__aexit__(None, None, None)


@pytest.fixture
async def gateway(upstream, strict_guard):
    """Makes clients of gateways: ``said`` is what the model's server replies, or how."""
    async with AsyncExitStack() as stack:

        def make(guard=strict_guard, *, said=None, key=None, **settings):
            client = None
            if said is not None:
                answer = said if callable(said) else lambda request: said
                client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
            address = upstream if said is None else "http://model/v1"
            settings = GatewaySettings.model_validate({"upstream": address} | settings)
            http = httpx.AsyncClient(
                transport=_WithLifespan(create_app(guard, settings, client=client)),
                base_url="http://gateway",
                headers={"authorization": f"Bearer {key}"} if key else None,
            )
            stack.push_async_callback(http.aclose)
            return http

        yield make
