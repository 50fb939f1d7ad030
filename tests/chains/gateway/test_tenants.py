"""A tenant has a policy, rights and bounds of its own, and sees and changes its own alone."""

import asyncio

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app
from chains.gateway.callers import identify
from guardrail import STRICT, ConfigError, GuardrailConfig
from guardrail.log.records import RecordFilter, open_log
from tests.chains.conftest import CANARY, FALSE_MIDDLE, QUESTION, TRUE_START, scripted_guard
from tests.chains.fake_openai import FakeOpenAI, served
from tests.chains.gateway.test_protocols import (
    LITELLM,
    TOLD,
    request_call,
    response_call,
)
from tests.chains.hotel import SAID

TENANTS = {
    "blue": {"keys": ["blue-key", "blue-next"]},
    "red": {
        "keys": "red-key",
        "policy": {"base": "annotate", "deadline_s": 5.0},
        "strictness": "strict",
        "caller": "policy,tools,structured_output",
        "per_minute": 1_000,
    },
    "slow": {"keys": ["slow-key"], "per_minute": 1, "caller": "strict"},
    "few": {"keys": ["few-key"], "concurrency": 1},
}
ASKED = {"id": "order-7", "question": QUESTION, "answer": TRUE_START}
CHAT = {"model": "false-only", "messages": [{"role": "user", "content": QUESTION}]}


def by(key):
    return {"authorization": f"Bearer {key}"}


@pytest.fixture
def gateway(tmp_path):
    """A gateway with tenants and two keys of its own, and its log."""
    config = GuardrailConfig(policy=STRICT, log=tmp_path / "scores.sqlite")
    with scripted_guard(config=config) as guard, served(FakeOpenAI().app) as url:
        settings = GatewaySettings(
            tenants=TENANTS, keys="own,other", upstream=f"{url}/v1", protocols="litellm"
        )
        transport = httpx.ASGITransport(create_app(guard, settings))
        yield httpx.AsyncClient(transport=transport, base_url="http://gateway")


async def test_each_has_its_policy_and_strictness(gateway):
    strict = await gateway.post("/v1/chat/completions", json=CHAT, headers=by("blue-next"))
    assert CANARY not in strict.text
    free = await gateway.post("/v1/chat/completions", json=CHAT, headers=by("red-key"))
    assert CANARY in free.text
    asked = {"question": QUESTION, "answer": TRUE_START}
    answer = (await gateway.post("/v1/checks", json=asked, headers=by("red-key"))).json()
    assert answer["versions"]["strictness"] == "strict"


async def test_each_has_its_rights(gateway):
    body = ASKED | {"passages": [FALSE_MIDDLE], "answer": FALSE_MIDDLE}
    category = {}
    for key in ("blue-key", "red-key"):
        answer = (await gateway.post("/v1/checks", json=body, headers=by(key))).json()
        category[key] = answer["sentences"][0]["category"]
    assert category == {"blue-key": "supportive", "red-key": "contradictory"}


async def test_each_has_its_rate_and_its_room(gateway):
    async def codes(key, number):
        calls = [gateway.post("/v1/checks", json=ASKED, headers=by(key)) for _ in range(number)]
        return sorted([reply.status_code for reply in await asyncio.gather(*calls)])

    assert await codes("slow-key", 3) == [200, 429, 429]
    assert await codes("few-key", 3) == [200, 429, 429]
    assert await codes("few-key", 1) == [200]
    assert await codes("blue-key", 3) == [200] * 3


@pytest.mark.parametrize(("other", "status"), [("red-key", 404), ("own", 404), ("blue-key", 200)])
async def test_feedback_goes_to_ones_own_answers_alone(gateway, tmp_path, other, status):
    await gateway.post("/v1/checks", json=ASKED, headers=by("blue-key"))
    said = {"record_id": "order-7", "thumb": 1, "tenant": "blue"}
    reply = await gateway.post("/v1/feedback", json=said, headers=by(other))
    assert reply.status_code == status
    assert "scores.sqlite" not in reply.text
    log = open_log(tmp_path / "scores.sqlite")
    assert len(list(log.feedback())) == (status == 200)
    log.close()


async def test_of_equal_ids_each_means_its_own(gateway, tmp_path):
    for key in ("blue-key", "red-key", "own", "other"):
        await gateway.post("/v1/checks", json=ASKED, headers=by(key))
    said = {"record_id": "order-7", "thumb": 1}
    for key in ("blue-key", "own"):
        assert (await gateway.post("/v1/feedback", json=said, headers=by(key))).status_code == 200
    log = open_log(tmp_path / "scores.sqlite")
    told = [
        log.latest(1, RecordFilter(id=one.record_id))[0].tags["tenant"] for one in log.feedback()
    ]
    assert told == ["blue", "key-1"]
    log.close()


async def test_feedback_before_its_record_waits_for_ones_own(gateway, tmp_path):
    name = "0" * 32
    said = {"record_id": name, "thumb": 1}
    for key in ("red-key", "blue-key"):
        assert (await gateway.post("/v1/feedback", json=said, headers=by(key))).status_code == 202
    await gateway.post("/v1/checks", json=ASKED | {"id": name}, headers=by("blue-key"))
    log = open_log(tmp_path / "scores.sqlite")
    (record,) = log.records()
    assert [one.tenant for one in log.feedback() if one.record_id == record.id] == ["blue"]
    log.close()


async def test_the_dashboard_shows_ones_own_answers_alone(gateway):
    for key, word in (("blue-key", "bluebell"), ("red-key", "redwood")):
        asked = {"question": f"Who was Mary Shelley, {word}?", "answer": TRUE_START}
        await gateway.post("/v1/checks", json=asked, headers=by(key))
    blue = (await gateway.get("/dashboard", auth=("any", "blue-key"))).text
    assert "bluebell" in blue
    assert "redwood" not in blue
    own = (await gateway.get("/dashboard", auth=("any", "own"))).text
    assert "bluebell" in own
    assert "redwood" in own


async def test_evidence_of_another_owners_call_does_not_speak_for_ones_own(gateway):
    for other, carried in (("red-key", False), ("own", False), ("blue-next", True)):
        await gateway.post(LITELLM, json=request_call("call", TOLD), headers=by(other))
        reply = await gateway.post(
            LITELLM, json=response_call("call", SAID), headers=by("blue-key")
        )
        assert ("42 rooms" in reply.text) == carried, other


async def test_keys_that_are_passed_through_own_their_calls_as_well(guard):
    transport = httpx.ASGITransport(create_app(guard, GatewaySettings(protocols="litellm")))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        await client.post(LITELLM, json=request_call("call", TOLD), headers=by("sk-theirs"))
        reply = await client.post(LITELLM, json=response_call("call", SAID), headers=by("sk-mine"))
    assert "42 rooms [NA]" in reply.text


async def test_numbers_tell_names_and_no_key(gateway):
    await gateway.post("/v1/chat/completions", json=CHAT, headers=by("red-key"))
    await gateway.post("/v1/checks", json=ASKED, headers=by("own"))
    page = (await gateway.get("/metrics", headers=by("own"))).text
    assert 'http_requests_total{route="/v1/checks",status="200",tenant="key-1"} 1.0' in page
    assert 'policy="annotate",result="annotated",tenant="red"} 1.0' in page
    assert 'tenant="key-1"' in page
    for key in ("red-key", "own", "other", "blue-next"):
        assert f'"{key}"' not in page
    assert (await gateway.get("/metrics", headers=by("red-key"))).status_code == 403


def test_workers_get_the_tenants():
    settings = GatewaySettings(tenants=TENANTS)
    again = GatewaySettings.model_validate_json(settings.json_with_keys())
    assert again == settings
    assert identify(again, "blue-next").name == "blue"


def test_tenants_in_one_variable():
    settings = GatewaySettings.from_env(
        environ={"GUARDRAIL_GATEWAY__TENANTS": "a=one, b=two, a=three"}
    )
    names = [identify(settings, key).name for key in ("one", "two", "three")]
    assert names == ["a", "b", "a"]
    assert "three" not in repr(settings)
    assert not GatewaySettings(tenants={"a": {"keys": "k"}}, host="0.0.0.0").open_to_network


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({"tenants": {"a b": {"keys": "k"}}}, "not a valid tenant name"),
        ({"tenants": {"key-1": {"keys": "k"}}}, "not a valid tenant name"),
        ({"tenants": {"a": {"keys": "s3cret"}}, "keys": ["s3cret"]}, "the same key"),
        ({"tenants": {"a": {"keys": "s3cret"}, "b": {"keys": "s3cret"}}}, "the same key"),
        ({"tenants": {"a": {"keys": "s3cret", "policy": "strickt"}}}, "did you mean 'strict'"),
        ({"tenants": {"a": {"keys": "s3cret", "policy": {"deadline": 1}}}}, "'deadline_s'"),
        ({"tenants": {"a": {"keys": ""}}}, "at least 1"),
        ({"tenants": "a"}, "empty"),
    ],
)
def test_what_is_wrong_with_a_tenant_is_told_without_its_key(section, says):
    with pytest.raises(ConfigError) as raised:
        GatewaySettings.from_env(section=section, environ={})
    assert says in str(raised.value)
    assert "s3cret" not in str(raised.value)
