"""Calls by path and model have policies of their own, beneath those of tenants."""

import pytest

from chains.gateway import GatewaySettings, create_app
from chains.gateway.settings import Route, route_of
from guardrail import STRICT, ConfigError, GuardrailConfig
from tests.chains.conftest import ANSWER, CANARY, FACTS, QUESTION, scripted_guard

ROUTES = {
    "drafts": {"models": "false-*", "policy": {"base": "annotate", "name": "drafts"}},
    "answers": {"paths": ["/v1/responses"], "policy": "annotate"},
    "sure": {"paths": "/v1/checks", "strictness": {"support": 0.9}},
    "high": {"models": "plain", "policy": {"thresholds": {"overall": 0.99}, "below": "refuse"}},
}
CHAT = {"messages": [{"role": "user", "content": QUESTION}]}


@pytest.fixture
def gateway(upstream, in_process):
    tenants = {
        "blue": {"keys": "blue-key"},
        "red": {"keys": "red-key", "policy": "strict"},
    }
    with scripted_guard(config=GuardrailConfig(policy=STRICT)) as guard:
        given = {"upstream": upstream, "routes": ROUTES, "tenants": tenants, "keys": "own"}
        given |= {"protocols": "litellm,portkey"}
        app = create_app(guard, GatewaySettings.model_validate(given))
        yield in_process(app, headers={"authorization": "Bearer own"})


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
    assert GatewaySettings.model_validate_json(settings.json_with_keys()) == settings


@pytest.mark.parametrize(
    ("route", "says"),
    [
        ({"policy": "strict"}, "with paths or models"),
        ({"models": "x", "policy": "strickt"}, "did you mean 'strict'"),
        ({"models": "x", "policy": {"treshold": 1}}, "thresholds"),
        ({"models": "x", "threshold": 1}, "routes"),
        ({"paths": "/v1/checks", "policy": "strict"}, "choose the policy"),
        ({"paths": ["/v1/responses", "/v1/rank/"], "policy": "strict"}, "/v1/rank"),
        ({"paths": "/v1/checks", "models": "x", "dry_run": True}, "name no model"),
        ({"paths": "/v1/chat/completion", "policy": "strict"}, "'/v1/chat/completions'"),
        ({"paths": "/v1/embeddings", "dry_run": True}, "nothing is judged at '/v1/embeddings'"),
        ({"paths": "/portkey/webhook", "policy": "strict"}, "nothing is judged at"),
    ],
)
def test_what_is_wrong_with_a_route_is_told(route, says):
    with pytest.raises(ConfigError) as raised:
        GatewaySettings.from_env(section={"routes": {"a": route}}, environ={})
    assert says in str(raised.value)


def test_where_a_wrong_route_stands_is_told():
    section = {"routes": {"a": {"paths": "/v1/embeddings", "dry_run": True}}}
    with pytest.raises(ConfigError, match=r"^\[gateway\] routes: route 'a': nothing is judged at"):
        GatewaySettings.from_env(section=section, environ={})
    with pytest.raises(ConfigError, match=r"^--route: route '/v1/checks': "):
        GatewaySettings.from_env(options={"routes": ["/v1/checks=strict"]}, environ={})


ITEMS = [{"triple": [fact.subject, fact.property, fact.value]} for fact in FACTS]
SAID = {"choices": [{"index": 0, "message": {"role": "assistant", "content": ANSWER}}]}
ASKED = {**CHAT, "guardrail": {"evidence": ITEMS}}


@pytest.mark.parametrize(("model", "told"), [("false-7", True), ("gpt", False)])
async def test_each_protocol_tells_the_model_of_its_calls(gateway, model, told):
    """Portkey writes it in the request that it repeats, LiteLLM in the call before the response."""
    webhook = {
        "eventType": "afterRequestHook",
        "request": {"json": ASKED | {"model": model}},
        "response": {"json": SAID | {"model": "false-answered"}},
    }
    reply = (await gateway.post("/portkey/webhook", json=webhook)).json()
    text = reply["transformedData"]["response"]["json"]["choices"][0]["message"]["content"]
    assert (CANARY in text) is told
    path, call = "/beta/litellm_basic_guardrail_api", {"litellm_call_id": model}
    evidence = {"additional_provider_specific_params": {"evidence": ITEMS}}
    asked = call | evidence | {"input_type": "request", "texts": [QUESTION], "model": model}
    await gateway.post(path, json=asked)
    answered = call | {"input_type": "response", "texts": [ANSWER]}
    texts = (await gateway.post(path, json=answered)).json()["texts"]
    assert (CANARY in texts[0]) is told
