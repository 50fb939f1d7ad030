"""Other gateways' protocols, with payloads as their documentation and clients write them."""

import json

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app
from chains.gateway.settings import PROTOCOL_PATHS
from guardrail import STRICT, ConfigError, GuardrailConfig, KnowledgeGraphError
from guardrail.log.records import open_log
from tests.chains.conftest import scripted_guard
from tests.chains.hotel import DOCUMENTS, HOTEL_QUESTION, ITEMS, MORE, RIGHT, SAID, SECRET, WRONG

LITELLM = "/beta/litellm_basic_guardrail_api"
FMS = "/api/v1/text/context/doc"
PORTKEY = "/portkey/webhook"
CHECKS = "/v1/checks"
KEY = {"x-api-key": "k"}
REQUESTS = "kg_guardrail_requests_total{"


@pytest.fixture(scope="module")
def gateway():
    config = GuardrailConfig(policy=STRICT)
    settings = GatewaySettings(protocols=tuple(PROTOCOL_PATHS), keys="k")
    with scripted_guard(config=config, retriever=lambda question: []) as guard:
        app = create_app(guard, settings)
        yield httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway")


async def post(gateway, path, body, headers=KEY):
    return await gateway.post(path, json=body, headers=headers)


def request_call(call, messages):
    return {
        "input_type": "request",
        "litellm_call_id": call,
        "texts": [HOTEL_QUESTION],
        "structured_messages": messages,
        "request_data": {},
        "additional_provider_specific_params": {},
        "model": "gpt",
    }


def response_call(call, text, **more):
    return {
        "input_type": "response",
        "litellm_call_id": call,
        "texts": [text],
        "structured_messages": None,
        "request_data": {},
        "additional_provider_specific_params": more,
    }


TOLD = [
    {"role": "user", "content": HOTEL_QUESTION},
    {
        "role": "tool",
        "tool_call_id": "c",
        "content": " ".join(document.text for document in DOCUMENTS),
    },
]


async def test_litellm_keeps_the_evidence_of_a_request_for_its_response(gateway):
    asked = await post(gateway, LITELLM, request_call("call-1", TOLD))
    assert asked.json() == {"action": "NONE"}
    reply = (await post(gateway, LITELLM, response_call("call-1", SAID))).json()
    assert reply["action"] == "GUARDRAIL_INTERVENED"
    (text,) = reply["texts"]
    assert "42 rooms" in text
    assert SECRET not in text
    other = (await post(gateway, LITELLM, response_call("call-2", RIGHT))).json()
    assert other["action"] == "BLOCKED"


async def test_litellm_blocks_an_answer_without_a_true_sentence(gateway):
    await post(gateway, LITELLM, request_call("call-3", TOLD))
    reply = (await post(gateway, LITELLM, response_call("call-3", WRONG))).json()
    assert reply["action"] == "BLOCKED"
    assert STRICT.refusal in reply["blocked_reason"]
    assert SECRET not in reply["blocked_reason"]


async def test_litellm_takes_evidence_of_its_parameters(gateway):
    call = response_call("none", SAID, evidence=ITEMS, policy="annotate")
    reply = (await post(gateway, LITELLM, call)).json()
    assert "[1]" in reply["texts"][0]
    assert "(https://h.example/guide)" in reply["texts"][0]
    wrong = await post(gateway, LITELLM, response_call("none", SAID, evidence=[{"txt": "a"}]))
    assert wrong.status_code == 400
    assert "did you mean 'text'" in wrong.json()["error"]["message"]


@pytest.mark.parametrize(
    "texts", ["text", {"0": SAID}, [{"text": SAID}], [[SAID]], [RIGHT, None], [RIGHT, 5, SAID]]
)
async def test_litellm_refuses_what_it_cannot_judge(gateway, texts):
    call = response_call("call-5", SAID) | {"texts": texts}
    reply = await post(gateway, LITELLM, call)
    assert reply.status_code == 400
    assert "texts must be a list of texts" in reply.json()["error"]["message"]
    for none in ([], None):
        assert (await post(gateway, LITELLM, call | {"texts": none})).json() == {"action": "NONE"}


@pytest.mark.parametrize("allowed", [False, True])
async def test_litellm_blocks_calls_of_tools_that_callers_may_not_use(allowed):
    settings = GatewaySettings(
        protocols="litellm", keys="k", caller="free" if allowed else "evidence"
    )
    tool = {"name": "pay", "arguments": "{}"}
    call = response_call("call-6", "") | {"tool_calls": [{"type": "function", "function": tool}]}
    with scripted_guard(config=GuardrailConfig(policy=STRICT)) as guard:
        transport = httpx.ASGITransport(create_app(guard, settings))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            reply = (await post(client, LITELLM, call)).json()
    assert reply["action"] == ("NONE" if allowed else "BLOCKED")
    assert allowed or "callers may not use" in reply["blocked_reason"]


TRUE = {"person": {"occupation": "Mary Shelley was a writer"}}
FALSE = {"born_in": f"4 May 1999 in {SECRET}"}


def calling(document, **more):
    function = {"name": "save", "arguments": json.dumps(document), "provider_fields": None}
    return {"tool_calls": [{"id": "c1", "type": "function", "function": function} | more]}


@pytest.mark.parametrize(
    ("said", "action"),
    [
        (calling(TRUE), "NONE"),
        (calling(TRUE, provider_specific_fields={"thought_signature": "c2lnbmVk"}), "NONE"),
        (calling(FALSE), "BLOCKED"),
        (calling(TRUE, note=f"born in {SECRET}"), "BLOCKED"),
        ({"tool_calls": {"note": f"born in {SECRET}"}}, "BLOCKED"),
        ({"texts": [json.dumps(TRUE)]}, "NONE"),
        ({"texts": [json.dumps(FALSE)]}, "BLOCKED"),
    ],
)
async def test_litellm_has_calls_and_json_judged_where_the_policy_says_so(said, action):
    settings = GatewaySettings(protocols="litellm", keys="k")
    policy = STRICT.changed(structured=True, needs_support=False)
    with scripted_guard(config=GuardrailConfig(policy=policy)) as guard:
        transport = httpx.ASGITransport(create_app(guard, settings))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            asked = "Who was Mary Shelley?"
            messages = [{"role": "user", "content": asked}]
            await post(client, LITELLM, request_call("c", messages) | {"texts": [asked]})
            reply = await post(client, LITELLM, response_call("c", "") | said)
    assert reply.json()["action"] == action
    assert SECRET not in reply.text
    if action == "NONE":
        (verdict,) = reply.json()["guardrail"]["structured"]
        assert not verdict["withheld"]


async def test_litellm_is_told_which_calls_nobody_judged(gateway):
    call = response_call("call-7", "") | calling(FALSE)
    reply = (await post(gateway, LITELLM, call)).json()
    assert reply == {"action": "NONE", "guardrail": {"unjudged": ["tool call save"]}}
    call |= calling(FALSE, note=f"born in {SECRET}")
    reply = (await post(gateway, LITELLM, call)).json()
    assert reply["guardrail"]["unjudged"] == ["tool call save", "tool calls"]


async def test_litellm_has_no_more_texts_than_a_reply_has_choices(gateway):
    call = response_call("call-8", "") | {"texts": ["It has 42 rooms."] * 129}
    assert (await post(gateway, LITELLM, call)).status_code == 400


async def test_litellm_holds_the_growing_sentence_of_a_stream_back(gateway):
    await post(gateway, LITELLM, request_call("call-4", TOLD))
    seen = ""
    for end in range(10, len(SAID) + 1, 7):
        reply = (await post(gateway, LITELLM, response_call("call-4", SAID[:end]))).json()
        if reply["action"] == "GUARDRAIL_INTERVENED":
            text, held = reply["texts"][0], reply["stream_holdback_chars"][0]
            seen = text[: len(text) - held]
        assert reply["action"] != "BLOCKED"
        assert SECRET not in seen
        assert "97" not in seen
    assert "42 rooms" in seen


async def test_portkey(gateway):
    body = {
        "eventType": "afterRequestHook",
        "provider": "openai",
        "requestType": "chatComplete",
        "metadata": {},
        "request": {"json": {"model": "m", "messages": TOLD}, "text": HOTEL_QUESTION},
        "response": {
            "json": {
                "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{
                    "index": 0, "finish_reason": "stop",
                    "message": {"role": "assistant", "content": SAID},
                }],
            },
            "text": SAID,
            "statusCode": 200,
        },
    }  # fmt: skip
    reply = (await post(gateway, PORTKEY, body)).json()
    assert reply["verdict"] is True
    changed = reply["transformedData"]["response"]["json"]
    assert "42 rooms" in changed["choices"][0]["message"]["content"]
    assert SECRET not in str(reply)
    body["response"]["json"]["choices"][0]["message"]["content"] = WRONG
    refused = (await post(gateway, PORTKEY, body)).json()
    assert refused["verdict"] is False
    assert SECRET not in str(refused)
    before = await post(gateway, PORTKEY, {**body, "eventType": "beforeRequestHook"})
    assert before.json() == {"verdict": True}


async def test_portkeys_replies_are_judged_however_many_choices_were_asked_for(gateway):
    request = {"model": "m", "messages": TOLD, "n": 100, "tools": [{"type": "function"}]}
    texts = ["It has 42 rooms.", "It has 97 rooms."]
    choices = [{"index": n, "message": {"content": text}} for n, text in enumerate(texts)]
    choices[0]["message"] |= calling(FALSE)
    body = {"eventType": "afterRequestHook", "request": {"json": request}}
    body |= {"response": {"json": {"id": "1", "choices": choices}}}
    reply = (await post(gateway, PORTKEY, body)).json()
    first, second = reply["transformedData"]["response"]["json"]["choices"]
    assert first["message"]["guardrail"]["unjudged"] == ["tool call save"]
    assert "97" not in second["message"]["content"]


async def test_the_mode_says_what_checks_are_judged_against(tmp_path):
    """Beside what a call hands over the retriever is asked in one mode, and alone in another."""
    asked = {"answer": f"{RIGHT} {WRONG}", "passages": [MORE]}
    sources = {}
    for mode in ("given", "both", "graph"):
        config = GuardrailConfig(policy=STRICT, log=tmp_path / f"{mode}.sqlite")
        settings = GatewaySettings(protocols="fms", evidence_mode=mode)
        with scripted_guard(config=config, retriever=lambda question: [RIGHT]) as guard:
            transport = httpx.ASGITransport(create_app(guard, settings))
            client = httpx.AsyncClient(transport=transport, base_url="http://gateway")
            assert (await client.post(CHECKS, json=asked)).status_code == 200
        with open_log(tmp_path / f"{mode}.sqlite", read_only=True) as log:
            (record,) = log.records()
        sources[mode] = {item.text for item in record.answer.evidence}
    assert sources == {"given": {MORE}, "both": {MORE, RIGHT}, "graph": {RIGHT}}


async def test_a_detector_that_fails_is_counted_by_the_policy_of_checks():
    def lose(question):
        raise KnowledgeGraphError("the store is gone")

    config = GuardrailConfig(policy=STRICT.changed(name="shop", unavailable="raise"))
    with scripted_guard(config=config, retriever=lose) as guard:
        settings = GatewaySettings(protocols="fms", evidence_mode="both")
        transport = httpx.ASGITransport(create_app(guard, settings))
        client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
        await client.post(FMS, json={"content": WRONG, "context": [RIGHT]})
        numbers = (await client.get("/metrics")).text
    counted = [line for line in numbers.splitlines() if line.startswith(REQUESTS)]
    assert counted
    assert all('policy="annotate"' in line for line in counted)


async def test_a_reply_names_its_record(tmp_path):
    config = GuardrailConfig(policy=STRICT, log=tmp_path / "scores.sqlite")
    asked = {"content": WRONG, "context": [RIGHT]}
    with scripted_guard(config=config) as guard:
        app = create_app(guard, GatewaySettings(protocols="fms"))
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway")
        reply = await client.post(FMS, json=asked)
    assert "x-guardrail-dry-run" not in reply.headers
    with open_log(tmp_path / "scores.sqlite", read_only=True) as log:
        (record,) = log.records()
    assert reply.headers["x-guardrail-record"] == record.answer.id


@pytest.mark.parametrize("path", PROTOCOL_PATHS.values())
async def test_a_protocol_needs_the_gateways_key(gateway, path):
    assert (await post(gateway, path, {}, {})).status_code == 401


async def test_a_protocol_that_is_not_switched_on_is_not_served(guard):
    app = create_app(guard, GatewaySettings())
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway")
    assert (await client.post(LITELLM, json={})).status_code == 404
    with pytest.raises(ConfigError, match="did you mean 'litellm'"):
        GatewaySettings.from_env(environ={"GUARDRAIL_GATEWAY__PROTOCOLS": "litelm"})
