"""A request to the gateway may say how sure the judge must be, unless the settings forbid it."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app
from guardrail import STRICT, Guardrail, GuardrailConfig
from guardrail.core.types import Grounding
from tests.guardrail.scripted import Scripted

SENTENCE = "The old bridge was opened by a queen."
LIKELY = Grounding(supported=0.6, unsupported=0.38, contradicted=0.02, no_claim=0)
NOTES = ["The bridge was opened in 1932."]


class SaysSo(Scripted):
    """Believes every sentence alike."""

    def ground(self, items):  # type: ignore[no-untyped-def]
        return [LIKELY for _ in items]


@pytest.fixture(scope="module")
def guard() -> Iterator[Guardrail]:
    config = GuardrailConfig.model_validate({"graph": "none", "policy": STRICT})
    with Guardrail(config, grounding=SaysSo({})) as guard:
        yield guard


@pytest.fixture
async def gateway(
    guard: Guardrail, upstream: str, in_process: Callable[..., httpx.AsyncClient]
) -> Callable[..., httpx.AsyncClient]:
    def make(**settings: object) -> httpx.AsyncClient:
        app = create_app(guard, GatewaySettings.model_validate({"upstream": upstream} | settings))
        return in_process(app)

    return make


async def test_checks_and_rank_take_it(gateway: Callable[..., httpx.AsyncClient]) -> None:
    client = gateway()
    asked = {"question": "", "passages": NOTES}
    categories = {}
    for strictness in ("lenient", "strict", {"support": 0.61}):
        body = asked | {"answer": SENTENCE, "strictness": strictness}
        answer = (await client.post("/v1/checks", json=body)).json()
        categories[str(strictness)] = answer["sentences"][0]["category"]
    assert categories == {
        "lenient": "supportive", "strict": "irrelevant", "{'support': 0.61}": "irrelevant",
    }  # fmt: skip
    body = asked | {"answers": [SENTENCE], "strictness": "strict"}
    ranked = (await client.post("/v1/rank", json=body)).json()
    assert ranked["ranking"][0]["scorecard"]["scores"]["supported_share"]["value"] == 0.0
    wrong = await client.post("/v1/checks", json={"answer": "x", "strictness": "strickt"})
    assert wrong.status_code == 400
    assert "did you mean 'strict'" in wrong.json()["error"]["message"]


def action(reply: dict[str, Any]) -> str:
    return reply["choices"][0]["message"]["guardrail"]["action"]  # type: ignore[no-any-return]


async def test_a_chat_takes_it_and_the_settings_may_forbid_it(
    gateway: Callable[..., httpx.AsyncClient],
) -> None:
    body = {
        "model": "plain",
        "messages": [{"role": "user", "content": "Who was Mary Shelley, who wrote Frankenstein?"}],
        "guardrail": {"evidence": NOTES, "strictness": "strict"},
    }
    reply = (await gateway().post("/v1/chat/completions", json=body)).json()
    assert action(reply) == "refuse"
    held = gateway(caller="evidence")
    reply = (await held.post("/v1/chat/completions", json=body)).json()
    assert action(reply) != "refuse"
