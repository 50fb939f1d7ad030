"""What a caller may do, each on its own: what is closed delivers nothing, by any way in."""

import json

import pytest

from chains.caller import CallerRights
from chains.gateway import GatewaySettings, create_app
from guardrail import STRICT, ConfigError, GuardrailConfig
from tests.chains.conftest import CANARY, FALSE_MIDDLE, QUESTION, scripted_guard

ASKED = {"model": "false-only", "messages": [{"role": "user", "content": QUESTION}]}
TOLD = [FALSE_MIDDLE]
BROUGHT = {
    "handed over": ASKED | {"guardrail": {"evidence": TOLD}},
    "a content part": ASKED
    | {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": QUESTION},
                    {"type": "grounding_source", "text": FALSE_MIDDLE},
                ],
            }
        ]
    },
    "beside the messages": ASKED | {"groundingSources": TOLD},
    "a tool's message": ASKED
    | {
        "messages": [
            *ASKED["messages"],
            {"role": "tool", "tool_call_id": "c", "content": FALSE_MIDDLE},
        ]
    },
    "marked text": ASKED
    | {"messages": [{"role": "user", "content": f"{QUESTION} <c>{FALSE_MIDDLE}</c>"}]},
}
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {}}}
FORMAT = {"type": "json_object"}


@pytest.fixture(scope="module")
def guard():
    with scripted_guard(config=GuardrailConfig(policy=STRICT)) as guard:
        yield guard


@pytest.fixture
def gateway(upstream, guard, in_process):
    def make(**settings):
        marks = {"upstream": upstream, "evidence_marks": ("<c>", "</c>")}
        app = create_app(guard, GatewaySettings(**marks | settings))
        return in_process(app)

    return make


def errors(reply):
    return [one["part"] for one in reply.json()["choices"][0]["message"]["guardrail"]["errors"]]


@pytest.mark.parametrize("body", BROUGHT.values(), ids=BROUGHT)
@pytest.mark.parametrize("closed", ["policy,tools,structured_output", "strict"])
async def test_evidence_that_may_not_be_brought_carries_nothing(gateway, body, closed):
    free = await gateway(evidence_mode="both").post("/v1/chat/completions", json=body)
    assert CANARY in free.text
    for mode in ("given", "both"):
        held = gateway(evidence_mode=mode, caller=closed)
        reply = await held.post("/v1/chat/completions", json=body)
        assert CANARY not in reply.text
        if closed != "strict" or body is not BROUGHT["a tool's message"]:
            assert "caller" in errors(reply)
        stream = await held.post("/v1/chat/completions", json=body | {"stream": True})
        assert CANARY not in stream.text


async def test_checks_and_rank_take_no_evidence_without_the_right(gateway):
    client = gateway(caller="policy")
    asked = {"question": QUESTION, "passages": TOLD}
    answer = (await client.post("/v1/checks", json=asked | {"answer": FALSE_MIDDLE})).json()
    assert answer["sentences"][0]["category"] == "contradictory"
    assert answer["evidence_from"] == ["graph"]
    assert "caller" in [one["part"] for one in answer["errors"]]
    ranked = (await client.post("/v1/rank", json=asked | {"answers": [FALSE_MIDDLE]})).json()
    assert ranked["ranking"][0]["score"] == 0.0


async def test_a_policy_that_may_not_be_named_is_told(gateway):
    body = ASKED | {"guardrail": {"policy": "annotate"}}
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
    asked = {key: value for key, value in ASKED.items() if "input" not in more or key == "model"}
    assert (await gateway().post(f"/v1/{path}", json=asked | more)).status_code == 200
    others = {"policy", "evidence", "tools", "structured_output"} - {right}
    for closed in (",".join(others), "strict"):
        reply = await gateway(caller=closed).post(f"/v1/{path}", json=asked | more)
        assert reply.status_code == 403
        assert reply.json()["error"]["code"] == "not_allowed"


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_of_tools_that_nobody_may_ask_for_stay_here(gateway, stream):
    asked = ASKED | {"model": "tools", "stream": stream}
    free = await gateway().post("/v1/chat/completions", json=asked | {"tools": [TOOL]})
    assert "look_up" in free.text
    unasked = await gateway().post("/v1/chat/completions", json=asked)
    assert "look_up" not in unasked.text
    assert "tool_calls" not in unasked.text
    held = await gateway(caller="evidence").post("/v1/chat/completions", json=asked)
    assert held.status_code == 200
    assert "look_up" not in held.text


async def test_json_that_nobody_may_ask_for_is_judged_as_text(gateway):
    reply = await gateway(caller="tools").post(
        "/v1/chat/completions", json=ASKED | {"model": "json"}
    )
    assert json.loads(reply.text)["choices"][0]["message"]["guardrail"]["action"]


def test_rights_are_a_preset_or_a_list():
    assert GatewaySettings().caller == CallerRights()
    assert not any(GatewaySettings(caller="strict").caller.model_dump().values())
    listed = GatewaySettings(caller=["evidence", "tools"]).caller
    assert listed == CallerRights(policy=False, structured_output=False)
    with pytest.raises(ConfigError, match="did you mean 'tools'"):
        GatewaySettings.from_env(environ={}, options={"caller": "tool"})
