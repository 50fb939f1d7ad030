"""What the gateway's own description allows, drawn by schemathesis: no call ends in a fault."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from chains.gateway import GatewaySettings, create_app
from tests.chains.conftest import scripted_guard
from tests.chains.fake_openai import served

SAID = {"role": "assistant", "content": "Mary Shelley was a writer."}
REPLY = {"id": "1", "object": "chat.completion", "choices": [{"index": 0, "message": SAID}]}


@pytest.fixture(scope="module")
def described():
    """The description of a gateway before a server that answers the same to whatever it is sent."""

    async def answer(request: Request) -> Response:
        await request.body()
        return JSONResponse(REPLY)

    upstream = Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])
    with served(upstream) as server, scripted_guard() as guard:
        app = create_app(guard, GatewaySettings.model_validate({"upstream": f"{server}/v1"}))
        with served(app) as address:
            yield schemathesis.openapi.from_url(f"{address}/openapi.json")


def test_no_call_of_the_description_ends_in_a_fault(described) -> None:
    operations = [found.ok() for found in described.get_all_operations()]
    paths = {operation.path for operation in operations}
    assert {"/v1/chat/completions", "/v1/responses", "/v1/checks", "/v1/rank"} <= paths
    answered: set[int] = set()

    @settings(
        max_examples=8 * len(operations),
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(operations).flatmap(lambda operation: operation.as_strategy()))
    def called(case: schemathesis.Case) -> None:
        reply = case.call()
        answered.add(reply.status_code)
        assert reply.status_code != 500, reply.text

    called()
    assert {200, 400} <= answered  # both what is right was drawn and what is wrong
