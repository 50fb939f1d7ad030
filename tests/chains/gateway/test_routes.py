"""Calls by path and model have policies of their own, beneath those of tenants."""

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app
from chains.gateway.routes import Route, route_of
from chains.gateway.serving import plain_settings
from guardrail import STRICT, ConfigError, GuardrailConfig
from tests.chains.conftest import CANARY, QUESTION, scripted_guard

ROUTES = {
    "drafts": {"models": "false-*", "policy": {"base": "annotate", "name": "drafts"}},
    "answers": {"paths": ["/v1/responses"], "policy": "annotate"},
    "sure": {"paths": "/v1/checks", "strictness": {"support": 0.9}},
    "high": {"models": "plain", "policy": {"thresholds": {"overall": 0.99}, "below": "refuse"}},
}
CHAT = {"messages": [{"role": "user", "content": QUESTION}]}


@pytest.fixture
def gateway(upstream):
    tenants = {
        "blue": {"keys": "blue-key"},
        "red": {"keys": "red-key", "policy": "strict"},
    }
    with scripted_guard(config=GuardrailConfig(policy=STRICT)) as guard:
        given = {"upstream": upstream, "routes": ROUTES, "tenants": tenants, "keys": "own"}
        app = create_app(guard, GatewaySettings.model_validate(given))
        yield httpx.AsyncClient(
            transport=httpx.ASGITransport(app),
            base_url="http://gateway",
            headers={"authorization": "Bearer own"},
        )


async def told(gateway, model, key="own"):
    """The message that a chat completion of a model ends in."""
    headers = {"authorization": f"Bearer {key}"}
    body = CHAT | {"model": model}
    reply = await gateway.post("/v1/chat/completions", json=body, headers=headers)
    return reply.json()["choices"][0]["message"]


async def test_a_models_answers_have_its_policy(gateway):
    assert CANARY in (await told(gateway, "false-only"))["content"]
    assert CANARY not in (await told(gateway, "other"))["content"]


async def test_thresholds_are_those_of_the_route(gateway):
    assert (await told(gateway, "plain"))["guardrail"]["action"] == "refuse"
    assert (await told(gateway, "other"))["guardrail"]["action"] == "filter"


async def test_what_the_tenant_says_wins(gateway):
    assert CANARY in (await told(gateway, "false-only", "blue-key"))["content"]
    assert CANARY not in (await told(gateway, "false-only", "red-key"))["content"]


async def test_a_path_has_its_policy_and_strictness(gateway):
    answered = await gateway.post("/v1/responses", json={"model": "other", "input": QUESTION})
    assert CANARY in answered.text
    asked = {"question": QUESTION, "answer": "Mary Shelley was a writer."}
    checked = (await gateway.post("/v1/checks", json=asked)).json()
    assert checked["sentences"][0]["thresholds"]["support"] == 0.9


def test_the_first_route_that_takes_a_call_holds():
    routes = {
        "both": Route(paths=("/v1/chat/completions/",), models=("gpt-4o*",)),
        "model": Route(models=("gpt-*",)),
    }
    for path, model, name in (
        ("/v1/chat/completions", "gpt-4o-mini", "both"),
        ("/v1/responses", "gpt-4o-mini", "model"),
        ("/v1/chat/completions", "gpt-5", "model"),
        ("/v1/chat/completions", "claude", None),
        ("/v1/checks", None, None),
    ):
        assert route_of(routes, path, model) is routes.get(name), (path, model)


def test_routes_in_one_variable():
    said = "gpt-4o*=strict, /v1/responses=annotate"
    settings = GatewaySettings.from_env(environ={"GUARDRAIL_GATEWAY__ROUTES": said})
    for path, model, policy in (
        ("/v1/responses", "gpt-4o-mini", "strict"),
        ("/v1/responses", "other", "annotate"),
    ):
        assert route_of(settings.routes, path, model).policy == policy
    for wrong in ("gpt-4o*", "gpt-4o*=strickt"):
        with pytest.raises(ConfigError):
            GatewaySettings.from_env(environ={"GUARDRAIL_GATEWAY__ROUTES": wrong})


def test_workers_get_the_routes():
    settings = GatewaySettings.model_validate({"routes": ROUTES})
    assert GatewaySettings.model_validate(plain_settings(settings)) == settings


@pytest.mark.parametrize(
    ("route", "says"),
    [
        ({"policy": "strict"}, "with paths or models"),
        ({"models": "x", "policy": "strickt"}, "did you mean 'strict'"),
        ({"models": "x", "policy": {"treshold": 1}}, "thresholds"),
        ({"models": "x", "threshold": 1}, "routes"),
    ],
)
def test_what_is_wrong_with_a_route_is_told(route, says):
    with pytest.raises(ConfigError) as raised:
        GatewaySettings.from_env(section={"routes": {"a": route}}, environ={})
    assert says in str(raised.value)
