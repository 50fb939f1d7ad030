"""Keys, tenants, routes and rights: what each caller may do, and the policy that judges it."""

import asyncio

import pytest

from chains.gateway import GatewaySettings
from chains.gateway.callers import identify
from chains.gateway.settings import Route, route_of
from chains.options import CallerRights
from guardrail import Guardrail, GuardrailConfig
from guardrail.core.types import Grounding
from guardrail.log.records import open_log
from tests.chains.conftest import ANSWER, CANARY, FACTS, FALSE_MIDDLE, QUESTION, TRUE_START
from tests.chains.gateway.test_protocols import LITELLM, MESSAGES, request_call, response_call
from tests.chains.hotel import SAID
from tests.guardrail.scripted import Scripted

TENANTS = {
    "blue": {"keys": ["blue-key", "blue-next"]},
    "red": {"keys": "red-key", "policy": {"base": "annotate", "deadline_s": 5.0},
        "strictness": "strict", "caller": "policy,tools,structured_output", "per_minute": 1_000},
    "slow": {"keys": ["slow-key"], "per_minute": 1, "caller": "strict"},
    "few": {"keys": ["few-key"], "concurrency": 1},
}  # fmt: skip
USER = [{"role": "user", "content": QUESTION}]
CHAT = {"model": "false-only", "messages": USER}
CHECK = {"id": "order-7", "question": QUESTION, "answer": TRUE_START}
FEEDBACK = {"record_id": "order-7", "thumb": 1}


def by(key):
    return {"authorization": f"Bearer {key}"}


def content(reply):
    return reply.json()["choices"][0]["message"]["content"]


# --- tenants ----------------------------------------------------------------------------------


@pytest.fixture
def shop(gateway, guarded, log_path):
    """A gateway with tenants, two keys of its own, and a log."""
    return gateway(guarded(path=log_path), tenants=TENANTS, keys="own,other", protocols="litellm")


async def test_each_tenant_has_its_policy_strictness_and_rights(shop):
    replies = {
        key: await shop.post("/v1/chat/completions", json=CHAT, headers=by(key))
        for key in ("blue-next", "red-key")
    }
    assert [CANARY in reply.text for reply in replies.values()] == [False, True]
    checked = await shop.post("/v1/checks", json=CHECK, headers=by("red-key"))
    assert checked.json()["versions"]["strictness"] == "strict"
    body = CHECK | {"passages": [FALSE_MIDDLE], "answer": FALSE_MIDDLE}
    for key, category in (("blue-key", "supportive"), ("red-key", "contradictory")):
        answer = (await shop.post("/v1/checks", json=body, headers=by(key))).json()
        assert answer["sentences"][0]["category"] == category


async def test_each_tenant_has_its_rate_and_concurrency(shop):
    async def codes(key, number):
        calls = [shop.post("/v1/checks", json=CHECK, headers=by(key)) for _ in range(number)]
        return sorted([reply.status_code for reply in await asyncio.gather(*calls)])

    assert await codes("slow-key", 3) == [200, 429, 429]
    assert await codes("few-key", 3) == [200, 429, 429]
    assert await codes("few-key", 1) == [200]
    assert await codes("blue-key", 3) == [200] * 3


async def test_feedback_goes_to_ones_own_answers_alone(shop, log_path):
    await shop.post("/v1/checks", json=CHECK, headers=by("blue-key"))
    body = FEEDBACK | {"tenant": "blue"}
    for other, status in (("red-key", 404), ("own", 404), ("blue-key", 200)):
        reply = await shop.post("/v1/feedback", json=body, headers=by(other))
        assert reply.status_code == status
        assert "scores.sqlite" not in reply.text
        with open_log(log_path) as log:
            assert len(list(log.feedback())) == (status == 200)


async def test_of_equal_ids_each_means_its_own(shop, log_path):
    late = "0" * 32
    for key in ("red-key", "blue-key"):  # before there is a record
        body = FEEDBACK | {"record_id": late}
        assert (await shop.post("/v1/feedback", json=body, headers=by(key))).status_code == 202
    await shop.post("/v1/checks", json=CHECK | {"id": late}, headers=by("blue-key"))
    for key in ("blue-key", "red-key", "own", "other"):
        await shop.post("/v1/checks", json=CHECK, headers=by(key))
    for key in ("blue-key", "own"):
        assert (await shop.post("/v1/feedback", json=FEEDBACK, headers=by(key))).status_code == 200
    with open_log(log_path) as log:
        owners = {record.id: record.tags["tenant"] for record in log.records()}
        found = [owners[one.record_id] for one in log.feedback() if one.record_id in owners]
    assert sorted(found) == ["blue", "blue", "key-1"]


async def test_the_dashboard_shows_ones_own_answers_alone(shop):
    for key, word in (("blue-key", "bluebell"), ("red-key", "redwood")):
        body = {"question": f"Who was Mary Shelley, {word}?", "answer": TRUE_START}
        await shop.post("/v1/checks", json=body, headers=by(key))
    for key, red in (("blue-key", False), ("own", True)):
        page = (await shop.get("/dashboard", auth=("any", key))).text
        assert ("bluebell" in page, "redwood" in page) == (True, red)


async def test_evidence_of_another_owners_call_does_not_support_ones_own(shop, gateway, guard):
    for other, supported in (("red-key", False), ("own", False), ("blue-next", True)):
        await shop.post(LITELLM, json=request_call("call", MESSAGES), headers=by(other))
        reply = await shop.post(LITELLM, json=response_call("call", SAID), headers=by("blue-key"))
        assert ("42 rooms" in reply.text) == supported, other
    client = gateway(guard, protocols="litellm")  # the keys of callers are the upstream's
    await client.post(LITELLM, json=request_call("call", MESSAGES), headers=by("sk-theirs"))
    reply = await client.post(LITELLM, json=response_call("call", SAID), headers=by("sk-mine"))
    assert "42 rooms [NA]" in reply.text


async def test_metrics_show_names_and_no_key(shop):
    await shop.post("/v1/chat/completions", json=CHAT, headers=by("red-key"))
    await shop.post("/v1/checks", json=CHECK, headers=by("own"))
    page = (await shop.get("/metrics", headers=by("own"))).text
    assert 'http_requests_total{route="/v1/checks",status="200",tenant="key-1"} 1.0' in page
    assert 'policy="annotate",result="annotated",tenant="red"} 1.0' in page
    for key in ("red-key", "own", "other", "blue-next"):
        assert f'"{key}"' not in page
    assert (await shop.get("/metrics", headers=by("red-key"))).status_code == 403


def test_workers_get_the_tenants_and_routes():
    settings = GatewaySettings.model_validate({"tenants": TENANTS, "routes": ROUTES})
    assert GatewaySettings.model_validate_json(settings.json_with_keys()) == settings


def test_tenants_and_routes_in_one_variable():
    environ = {
        "GUARDRAIL_GATEWAY__TENANTS": "a=one, b=two, a=three",
        "GUARDRAIL_GATEWAY__ROUTES": "gpt-4o*=strict, /v1/responses=annotate",
    }
    settings = GatewaySettings.from_env(environ=environ)
    names = [identify(settings, key).name for key in ("one", "two", "three")]
    assert names == ["a", "b", "a"]
    assert "three" not in repr(settings)
    for model, policy in (("gpt-4o-mini", "strict"), ("other", "annotate")):
        assert route_of(settings.routes, "/v1/responses", model).policy == policy


# --- routes -----------------------------------------------------------------------------------

ROUTES = {
    "drafts": {"calls": "false-*", "policy": {"base": "annotate", "name": "drafts"}},
    "answers": {"calls": ["/v1/responses"], "policy": "annotate"},
    "sure": {"calls": "/v1/checks", "strictness": {"support": 0.9}},
    "high": {"calls": "plain", "policy": {"thresholds": {"overall": 0.99}, "below": "refuse"}},
}
ITEMS = [{"triple": [fact.subject, fact.property, fact.value]} for fact in FACTS]


@pytest.fixture
def routed(gateway):
    tenants = {"blue": {"keys": "blue-key"}, "red": {"keys": "red-key", "policy": "strict"}}
    settings = {"routes": ROUTES, "tenants": tenants, "protocols": "litellm,portkey"}
    return gateway(key="own", keys="own", **settings)


@pytest.mark.parametrize(
    ("model", "key", "action"),
    [
        ("false-only", "own", "annotate"),
        ("other", "own", "filter"),
        ("plain", "own", "refuse"),
        ("false-only", "blue-key", "annotate"),
        ("false-only", "red-key", "refuse"),
    ],
)
async def test_a_model_has_its_policy_unless_the_tenant_has_one(routed, model, key, action):
    body = CHAT | {"model": model}
    reply = await routed.post("/v1/chat/completions", json=body, headers=by(key))
    assert reply.json()["choices"][0]["message"]["guardrail"]["action"] == action
    marked_only = action == "annotate"
    assert (CANARY in content(reply)) is marked_only
    answered = await routed.post("/v1/responses", json={"model": "other", "input": QUESTION})
    assert CANARY in answered.text  # a path has its policy and strictness as well
    checked = (await routed.post("/v1/checks", json=CHECK)).json()
    assert checked["sentences"][0]["thresholds"]["support"] == 0.9


@pytest.mark.parametrize(("model", "marked_only"), [("false-7", True), ("gpt", False)])
async def test_calls_of_other_gateways_are_routed_by_their_model(routed, model, marked_only):
    """Portkey writes it in the request that it repeats, LiteLLM in the call before the response."""
    choice = {"index": 0, "message": {"role": "assistant", "content": ANSWER}}
    webhook = {
        "eventType": "afterRequestHook",
        "request": {"json": CHAT | {"model": model, "guardrail": {"evidence": ITEMS}}},
        "response": {"json": {"choices": [choice], "model": "false-answered"}},
    }
    reply = (await routed.post("/portkey/webhook", json=webhook)).json()
    text = reply["transformedData"]["response"]["json"]["choices"][0]["message"]["content"]
    assert (CANARY in text) is marked_only
    request = request_call(model, USER, evidence=ITEMS) | {"texts": [QUESTION], "model": model}
    await routed.post(LITELLM, json=request)
    reply = await routed.post(LITELLM, json=response_call(model, ANSWER))
    assert (CANARY in reply.json()["texts"][0]) is marked_only


def test_the_first_matching_route_applies():
    routes = {
        "both": Route(calls=("/v1/chat/completions/", "gpt-4o*")),
        "model": Route(calls=("gpt-*",)),
    }
    for path, model, name in (
        ("/v1/chat/completions", "gpt-4o-mini", "both"),
        ("/v1/responses", "gpt-4o-mini", "both"),
        ("/v1/responses", "gpt-5", "model"),
        ("/v1/chat/completions", "claude", "both"),
        ("/v1/responses", "claude", None),
        ("/v1/checks", None, None),
    ):
        assert route_of(routes, path, model) is routes.get(name), (path, model)


# --- rights -----------------------------------------------------------------------------------


def asking(*content):
    return CHAT | {"messages": [{"role": "user", "content": content}]}


QUERY, SOURCE = {"type": "text", "text": QUESTION}, {"type": "grounding_source"}
BROUGHT = {
    "handed over": CHAT | {"guardrail": {"evidence": [FALSE_MIDDLE]}},
    "a content part": asking(QUERY, SOURCE | {"text": FALSE_MIDDLE}),
    "next to the messages": CHAT | {"groundingSources": [FALSE_MIDDLE]},
    "a tool's message": CHAT
    | {"messages": [*USER, {"role": "tool", "tool_call_id": "c", "content": FALSE_MIDDLE}]},
    "marked text": asking(QUERY | {"text": f"{QUESTION} <c>{FALSE_MIDDLE}</c>"}),
}
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {}}}
FORMAT = {"type": "json_object"}


def errors(reply):
    return [one["part"] for one in reply.json()["choices"][0]["message"]["guardrail"]["errors"]]


@pytest.mark.parametrize("body", BROUGHT.values(), ids=BROUGHT)
@pytest.mark.parametrize("closed", ["policy,tools,structured_output", "strict"])
async def test_evidence_that_may_not_be_brought_supports_nothing(gateway, body, closed):
    marks = {"evidence_marks": ("<c>", "</c>")}
    free = await gateway(evidence_mode="both", **marks).post("/v1/chat/completions", json=body)
    assert CANARY in free.text
    for mode in ("given", "both"):
        client = gateway(evidence_mode=mode, caller=closed, **marks)
        reply = await client.post("/v1/chat/completions", json=body)
        assert CANARY not in reply.text
        if closed != "strict" or body is not BROUGHT["a tool's message"]:
            assert "caller" in errors(reply)
        stream = await client.post("/v1/chat/completions", json=body | {"stream": True})
        assert CANARY not in stream.text


async def test_checks_and_rank_take_no_evidence_without_the_right(gateway):
    client = gateway(caller="policy")
    body = {"question": QUESTION, "passages": [FALSE_MIDDLE]}
    answer = (await client.post("/v1/checks", json=body | {"answer": FALSE_MIDDLE})).json()
    assert answer["sentences"][0]["category"] == "contradictory"
    assert answer["evidence_from"] == ["graph"]
    assert "caller" in [one["part"] for one in answer["errors"]]
    ranked = (await client.post("/v1/rank", json=body | {"answers": [FALSE_MIDDLE]})).json()
    assert ranked["ranking"][0]["score"] == 0.0


async def test_a_policy_that_may_not_be_named_is_reported(gateway):
    body = CHAT | {"guardrail": {"policy": "annotate"}}
    assert CANARY in (await gateway().post("/v1/chat/completions", json=body)).text
    for closed in ("evidence", "strict"):
        reply = await gateway(caller=closed).post("/v1/chat/completions", json=body)
        assert CANARY not in reply.text
        assert "caller" in errors(reply)
    body = {"question": QUESTION, "answer": FALSE_MIDDLE, "policy": "strict"}
    answer = (await gateway(caller="evidence").post("/v1/checks", json=body)).json()
    assert answer["versions"]["policy"] == "annotate"


@pytest.mark.parametrize(
    ("right", "path", "more"),
    [
        ("tools", "chat/completions", {"tools": [TOOL]}),
        ("tools", "chat/completions", {"functions": [TOOL["function"]]}),
        ("tools", "responses", {"tools": [TOOL], "input": QUESTION}),
        ("structured_output", "chat/completions", {"response_format": FORMAT}),
        ("structured_output", "responses", {"text": {"format": FORMAT}, "input": QUESTION}),
    ],
)
async def test_tools_and_json_are_refused_without_the_right(gateway, right, path, more):
    body = ({"model": "false-only"} if "input" in more else CHAT) | more
    assert (await gateway().post(f"/v1/{path}", json=body)).status_code == 200
    others = {"policy", "evidence", "tools", "structured_output"} - {right}
    for closed in (",".join(others), "strict"):
        reply = await gateway(caller=closed).post(f"/v1/{path}", json=body)
        assert reply.status_code == 403
        assert reply.json()["error"]["code"] == "not_allowed"


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_of_tools_without_the_right_are_dropped(gateway, stream):
    body = CHAT | {"model": "tools", "stream": stream}
    for caller, more in (("free", {"tools": [TOOL]}), ("free", {}), ("evidence", {})):
        reply = await gateway(caller=caller).post("/v1/chat/completions", json=body | more)
        assert reply.status_code == 200
        assert ("look_up" in reply.text) == ("tool_calls" in reply.text) == bool(more)


def test_rights_are_a_preset_or_a_list():
    assert GatewaySettings().caller == CallerRights()
    assert not any(GatewaySettings(caller="strict").caller.model_dump().values())
    listed = GatewaySettings(caller=["evidence", "tools"]).caller
    assert listed == CallerRights(policy=False, structured_output=False, reasons=False)


# --- strictness -------------------------------------------------------------------------------

LIKELY = Grounding(supported=0.6, unsupported=0.38, contradicted=0.02, no_claim=0)
NOTES = ["The bridge was opened in 1932."]
SENTENCE = "The old bridge was opened by a queen."


class Unsure(Scripted):
    """Finds every sentence likely."""

    def ground(self, items):
        return [LIKELY for _ in items]


async def test_a_request_names_its_strictness_unless_it_may_not(gateway):
    with Guardrail(GuardrailConfig(graph="none", policy="strict"), grounding=Unsure({})) as guard:
        client, body = gateway(guard), {"question": "", "passages": NOTES}
        for strictness, category in (("lenient", "supportive"), ({"support": 0.61}, "irrelevant")):
            check = body | {"answer": SENTENCE, "strictness": strictness}
            answer = (await client.post("/v1/checks", json=check)).json()
            assert answer["sentences"][0]["category"] == category
        rank = body | {"answers": [SENTENCE], "strictness": "strict"}
        (ranked,) = (await client.post("/v1/rank", json=rank)).json()["ranking"]
        assert ranked["scorecard"]["scores"]["supported_share"]["value"] == 0.0
        wrong = await client.post("/v1/checks", json={"answer": "x", "strictness": "strickt"})
        assert "did you mean 'strict'" in wrong.json()["error"]["message"]
        chat = {"model": "plain", "messages": USER}
        chat |= {"guardrail": {"evidence": NOTES, "strictness": "strict"}}
        for caller, refused in (("free", True), ("evidence", False)):
            client = gateway(guard, caller=caller)
            reply = (await client.post("/v1/chat/completions", json=chat)).json()
            action = reply["choices"][0]["message"]["guardrail"]["action"]
            assert (action == "refuse") is refused
