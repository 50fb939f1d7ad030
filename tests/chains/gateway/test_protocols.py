"""Other gateways' protocols, with payloads as their documentation and clients write them.

The first tests check every registered protocol against the same rules, with the host's recorded
calls. The last call holds an answer of three sentences; the evidence contradicts the second one.
"""

import json

import pytest

from benchmarks.fuzz.bodies import HOSTS
from chains.evidence.base import EvidenceSettings, Found, Source
from chains.gateway.protocols import PROTOCOLS, LiteLLMGuardrail, PendingRequests
from chains.gateway.settings import PROTOCOL_PATHS
from chains.openai_request import GuardSettings
from chains.options import CallerRights
from guardrail import ANNOTATE, BEST_OF_N, STRICT, Action, KnowledgeGraphError, Passage, Triple
from guardrail.core.errors import GuardrailError
from guardrail.core.types import Problem
from guardrail.log.records import open_log
from tests.chains.hosts.asking import GUIDE, NOTES, PRICES, pages, recorded
from tests.chains.hotel import DOCUMENTS, HOTEL_QUESTION, ITEMS, MORE, RIGHT, SAID, SECRET, WRONG

LITELLM, PORTKEY = PROTOCOL_PATHS["litellm"], PROTOCOL_PATHS["portkey"]
TRUEFOUNDRY, FMS = PROTOCOL_PATHS["truefoundry"], PROTOCOL_PATHS["fms"]
ALL = tuple(PROTOCOL_PATHS)
GRAPH = "The Kestrel Hotel has a pool."
MESSAGES = [
    {"role": "user", "content": HOTEL_QUESTION},
    {"role": "tool", "tool_call_id": "c",
     "content": " ".join(document.text for document in DOCUMENTS)},
]  # fmt: skip


@pytest.fixture
def host(gateway, empty):
    """A gateway that serves all protocols and retrieves nothing."""
    return gateway(empty, protocols=ALL)


# --- every protocol ---------------------------------------------------------------------------

each = pytest.mark.parametrize("name", PROTOCOLS)
each_deciding = pytest.mark.parametrize(
    "name", [name for name, make in PROTOCOLS.items() if not make().texts]
)
"""Protocols that do what the policy decided; others report every sentence, and the host decides."""


@pytest.fixture
def judged(guarded):
    """The reply to the last of a host's recorded calls as JSON, and the verdict behind it."""
    guard = guarded(retriever=lambda question: [Passage(text=GRAPH)])

    async def judge(name, **options):
        protocol = PROTOCOLS[name]()
        assert SECRET in json.dumps(HOSTS[name][-1]), "its answer is SAID of tests/chains/hotel.py"
        for body in HOSTS[name]:
            reply, answers = await protocol.answer(body, GuardSettings(guard=guard, **options))
        (verdict,) = answers
        return json.dumps(reply), verdict

    return judge


@each_deciding
async def test_what_was_removed_does_not_leave(judged, name):
    for policy, action in ((STRICT, Action.FILTER), (ANNOTATE, Action.ANNOTATE)):
        reply, verdict = await judged(name, policy=policy)
        assert verdict.action is action
        assert (SECRET in reply) == (action is Action.ANNOTATE)
        assert RIGHT[:-1] in reply


@each_deciding
@pytest.mark.parametrize("reasons", [True, False])
async def test_a_refusal_does_not_repeat_what_was_refused(judged, name, reasons):
    refusing = STRICT.changed(thresholds={"supported_share": 1.0}, below="refuse")
    reply, verdict = await judged(name, policy=refusing, rights=CallerRights(reasons=reasons))
    assert verdict.action is Action.REFUSE
    assert STRICT.refusal in reply
    assert SECRET not in reply
    assert ("supported_share" in reply.replace('"supported_share"', "")) == reasons


@each
async def test_nothing_is_generated_again_and_a_dry_run_blocks_nothing(judged, name):
    _, verdict = await judged(name, policy=BEST_OF_N, checks_policy=BEST_OF_N)
    assert verdict.action is not Action.REGENERATE
    dry = ANNOTATE.changed(dry_run=True)
    reply, verdict = await judged(name, policy=STRICT.changed(dry_run=True), checks_policy=dry)
    assert verdict.would
    assert STRICT.refusal not in reply
    assert SAID in reply or RIGHT[:-1] not in reply, "a text in the reply is unchanged"


@each
async def test_evidence_counts_if_callers_may_bring_it(judged, name):
    _, verdict = await judged(name)
    assert {RIGHT, MORE} <= {item.text for item in verdict.evidence}
    _, verdict = await judged(name, rights=CallerRights(evidence=False))
    assert {item.text for item in verdict.evidence} == {GRAPH}
    assert verdict.errors


@each
@pytest.mark.parametrize("mode", ["given", "both", "graph"])
async def test_the_mode_selects_the_evidence(judged, name, mode):
    """What a call hands over replaces the graph; results of tools are added to it."""
    _, verdict = await judged(name, evidence=EvidenceSettings(mode=mode))
    texts = {item.text for item in verdict.evidence}
    assert (GRAPH in texts) == (mode != "given" or Source.TOOLS in verdict.evidence_from)
    assert (MORE in texts) == (mode != "graph")


@each
@pytest.mark.parametrize("odd", [None, 3, "text", [], {}, {"json": []}])
async def test_the_model_of_a_call_is_found(name, odd):
    protocol = PROTOCOLS[name]()
    field = protocol.model[-1]
    for body in HOSTS[name]:
        written, model = json.dumps(body), await protocol.model_of(body, "")
        assert f'"{field}": {json.dumps(model)}' in written or f'"{field}"' not in written
        without = {key: odd for key in body if key != field}
        assert await protocol.model_of(without, "") is None


@each
async def test_a_protocol_is_served_with_a_key_if_it_is_switched_on(gateway, name):
    path = PROTOCOL_PATHS[name]
    for protocols, headers, status in (
        ((), {"x-api-key": "k"}, 404),
        ((name,), {}, 401),
        ((name,), {"x-api-key": "k"}, 400),
    ):
        client = gateway(keys="k", protocols=protocols)
        assert (await client.post(path, json={}, headers=headers)).status_code == status


# --- LiteLLM ----------------------------------------------------------------------------------


def response_call(call, text, **parameters):
    return {
        "input_type": "response", "litellm_call_id": call, "texts": [text],
        "structured_messages": None, "request_data": {},
        "additional_provider_specific_params": parameters,
    }  # fmt: skip


def request_call(call, messages, **parameters):
    fields = {"input_type": "request", "structured_messages": messages, "model": "gpt"}
    return response_call(call, HOTEL_QUESTION, **parameters) | fields


def calling(document, **more):
    function = {"name": "save", "arguments": json.dumps(document), "provider_fields": None}
    return {"tool_calls": [{"id": "c1", "type": "function", "function": function} | more]}


TRUE = {"person": {"occupation": "Mary Shelley was a writer"}}
FALSE = {"born_in": f"4 May 1999 in {SECRET}"}
UNJUDGED = f"born in {SECRET}"


async def test_litellm_judges_a_response_by_the_evidence_of_its_request(host):
    reply = await host.post(LITELLM, json=recorded("litellm_request"))
    assert reply.json() == {"action": "NONE"}
    reply = (await host.post(LITELLM, json=recorded("litellm_response"))).json()
    assert (reply["action"], reply["texts"]) == ("GUARDRAIL_INTERVENED", [NOTES])
    other = (await host.post(LITELLM, json=response_call("other", RIGHT))).json()
    assert other["action"] == "BLOCKED"
    await host.post(LITELLM, json=request_call("wrong", MESSAGES))
    refused = (await host.post(LITELLM, json=response_call("wrong", WRONG))).json()
    assert STRICT.refusal in refused["blocked_reason"]
    assert SECRET not in str(refused)


async def test_litellm_takes_evidence_of_its_parameters(host):
    call = response_call("none", SAID, evidence=ITEMS, policy="annotate")
    (text,) = (await host.post(LITELLM, json=call)).json()["texts"]
    assert "[1]" in text
    assert "(https://h.example/guide)" in text
    wrong = await host.post(LITELLM, json=response_call("none", SAID, evidence=[{"txt": "a"}]))
    assert wrong.status_code == 400
    assert "did you mean 'text'" in wrong.json()["error"]["message"]


@pytest.mark.parametrize(
    ("texts", "status"),
    [
        ("text", 400),
        ({"0": SAID}, 400),
        ([{"text": SAID}], 400),
        ([RIGHT, None], 400),
        (["It has 42 rooms."] * 129, 400),
        ([], 200),
        (None, 200),
    ],
)
async def test_litellm_gets_nothing_back_that_cannot_be_judged(host, texts, status):
    reply = await host.post(LITELLM, json=response_call("c", SAID) | {"texts": texts})
    assert reply.status_code == status
    assert status == 400 or reply.json() == {"action": "NONE"}


async def test_litellm_blocks_calls_of_tools_without_the_right(gateway):
    for caller, action in (("evidence", "BLOCKED"), ("free", "NONE")):
        client = gateway(protocols="litellm", caller=caller)
        reply = await client.post(LITELLM, json=response_call("c", "") | calling({}))
        assert reply.json()["action"] == action


@pytest.mark.parametrize(
    ("response", "action"),
    [
        (calling(TRUE), "NONE"),
        (calling(TRUE, provider_specific_fields={"thought_signature": "c2lnbmVk"}), "NONE"),
        (calling(FALSE), "BLOCKED"),
        (calling(TRUE, note=UNJUDGED), "BLOCKED"),
        ({"tool_calls": {"note": UNJUDGED}}, "BLOCKED"),
        ({"texts": [json.dumps(TRUE)]}, "NONE"),
        ({"texts": [json.dumps(FALSE)]}, "BLOCKED"),
    ],
)
async def test_litellm_has_calls_and_json_judged_by_a_structured_policy(
    gateway, guarded, response, action
):
    guard = guarded(STRICT.changed(structured=True, needs_support=False))
    client, asked = gateway(guard, protocols="litellm"), "Who was Mary Shelley?"
    request = request_call("c", [{"role": "user", "content": asked}]) | {"texts": [asked]}
    await client.post(LITELLM, json=request)
    reply = await client.post(LITELLM, json=response_call("c", "") | response)
    assert reply.json()["action"] == action
    assert SECRET not in reply.text
    if action == "NONE":
        (verdict,) = reply.json()["guardrail"]["structured"]
        assert not verdict["withheld"]


async def test_litellm_gets_the_calls_that_were_not_judged(host):
    for more, unjudged in (({}, []), ({"note": UNJUDGED}, ["tool calls"])):
        body = response_call("c", "") | calling(FALSE, **more)
        reply = (await host.post(LITELLM, json=body)).json()
        expected = {"unjudged": ["tool call save", *unjudged]}
        assert reply == {"action": "NONE", "guardrail": expected}


async def test_litellm_holds_the_growing_sentence_of_a_stream_back(host):
    await host.post(LITELLM, json=request_call("c", MESSAGES))
    seen = ""
    for end in range(10, len(SAID) + 1, 7):
        reply = (await host.post(LITELLM, json=response_call("c", SAID[:end]))).json()
        if reply["action"] == "GUARDRAIL_INTERVENED":
            text, held = reply["texts"][0], reply["stream_holdback_chars"][0]
            seen = text[: len(text) - held]
        assert reply["action"] != "BLOCKED"
        assert SECRET not in seen
        assert "97" not in seen
    assert "42 rooms" in seen


async def test_pending_requests_are_bounded_in_bytes(guarded):
    """The oldest go first; a response whose request is gone reports it."""
    pending = PendingRequests(most_bytes=250_000)
    answer, guarding = LiteLLMGuardrail(pending), GuardSettings(guard=guarded())
    for call in range(20):
        long = [{"role": "tool", "content": f"{RIGHT} {'x' * 50_000}."}]
        for _ in range(2):  # the same call once more
            await answer(request_call(str(call), long), guarding)
    assert [call for call in range(20) if pending.get(str(call))] == [16, 17, 18, 19]
    _, (known,) = await answer(response_call("19", RIGHT), guarding)
    assert (known.errors, known.action) == ((), "pass")
    _, (gone,) = await answer(response_call("0", RIGHT), guarding)
    assert any("is not stored" in problem.message for problem in gone.errors)
    await answer(request_call("large", [], evidence=[{"text": "x" * 300_000}]), guarding)
    assert pending.get("large") is pending.get("19") is None


def test_pending_requests_are_bounded_in_number_and_unchanged(tmp_path):
    passage = Passage(text="Zoë \ud800 \u0000", id="1", url="https://h.example")
    triple = Triple(subject="Ada", property="born", value="1815", subject_id="Q7259")
    problem = Problem(part="evidence", message="cut")
    found = Found((triple, passage), (Source.TOOLS, Source.CALLER), "Who?", (problem,))
    pending = PendingRequests(most=100)
    for call in range(100):
        pending.add(str(call), "", Found(), None)
    pending.add("call \ud800", "What\udfff?", found, "gpt")
    assert pending.get("call \ud800") == ("What\udfff?", found, "gpt")
    assert [pending.get(call) is None for call in ("0", "1")] == [True, False]
    with pytest.raises(GuardrailError, match="cannot be stored"):
        PendingRequests(str(tmp_path / "nowhere" / "requests.sqlite"))


# --- Portkey and TrueFoundry ------------------------------------------------------------------


def portkey(text):
    body = recorded("portkey")
    body["response"]["json"]["choices"][0]["message"]["content"] = text
    return body


async def test_portkey(host):
    reply = (await host.post(PORTKEY, json=portkey(SAID))).json()
    assert reply["verdict"] is True
    (choice,) = reply["transformedData"]["response"]["json"]["choices"]
    assert "42 rooms" in choice["message"]["content"]
    refused = (await host.post(PORTKEY, json=portkey(WRONG))).json()
    assert refused["verdict"] is False
    assert SECRET not in f"{reply}{refused}"
    before = await host.post(PORTKEY, json=portkey(SAID) | {"eventType": "beforeRequestHook"})
    assert before.json() == {"verdict": True}


async def test_portkeys_replies_are_judged_however_many_choices_were_requested(host):
    request = {"model": "m", "messages": MESSAGES, "n": 100, "tools": [{"type": "function"}]}
    texts = ["It has 42 rooms.", "It has 97 rooms."]
    choices = [{"index": n, "message": {"content": text}} for n, text in enumerate(texts)]
    choices[0]["message"] |= calling(FALSE)
    body = {"eventType": "afterRequestHook", "request": {"json": request}}
    body |= {"response": {"json": {"id": "1", "choices": choices}}}
    reply = (await host.post(PORTKEY, json=body)).json()
    first, second = reply["transformedData"]["response"]["json"]["choices"]
    assert first["message"]["guardrail"]["unjudged"] == ["tool call save"]
    assert "97" not in second["message"]["content"]


@pytest.mark.parametrize(("choices", "status"), [(64, 200), (65, 400)])
async def test_no_choice_of_portkeys_replies_stays_unjudged(host, choices, status):
    one = {"message": {"content": "It has 42 rooms."}}
    body = {"eventType": "afterRequestHook", "request": {"json": {"messages": MESSAGES}}}
    body |= {"response": {"json": {"id": "1", "choices": [one] * choices}}}
    reply = await host.post(PORTKEY, json=body)
    assert reply.status_code == status
    assert (len(reply.json().get("data", {}).get("answers", ())) == choices) is (status == 200)


def truefoundry(text=SAID, **changes):
    body = recorded("truefoundry") | changes
    if "responseBody" not in changes:
        body["responseBody"]["choices"][0]["message"]["content"] = text
    return body


@pytest.mark.parametrize("stream", [False, True])  # the host makes a whole reply of a stream
async def test_truefoundry_cites_title_and_url(host, stream):
    body = truefoundry()
    body["requestBody"]["stream"] = stream
    reply = (await host.post(TRUEFOUNDRY, json=body)).json()
    assert (reply["verdict"], reply["transformed"]) == (True, True)
    message = reply["result"]["choices"][0]["message"]
    assert message["content"] == NOTES
    assert pages(message) == [GUIDE, PRICES]
    before = {key: value for key, value in body.items() if key != "responseBody"}
    assert (await host.post(TRUEFOUNDRY, json=before)).json() == {"verdict": True}


async def test_truefoundry_gets_a_refusal_as_a_verdict(gateway, empty):
    for caller, reasons in (("free", True), ("evidence", False)):
        client = gateway(empty, protocols="truefoundry", caller=caller)
        reply = (await client.post(TRUEFOUNDRY, json=truefoundry(WRONG))).json()
        assert reply["verdict"] is False
        assert reply["message"].startswith(STRICT.refusal)
        assert (reply["message"] == STRICT.refusal) is not reasons
        assert SECRET not in str(reply)


@pytest.mark.parametrize("config", [None, {}, {"operation": "validate"}, "mutate"])
async def test_truefoundrys_validating_guardrail_lets_nothing_out(gateway, guarded, config):
    """The host would leave the reply as it is, with what was removed from it."""
    for dry_run in (True, False):
        client = gateway(guarded(STRICT.changed(dry_run=dry_run)), protocols="truefoundry")
        reply = (await client.post(TRUEFOUNDRY, json=truefoundry(config=config))).json()
        assert reply["verdict"] is dry_run
        assert dry_run or "Operation to Mutate" in reply["message"]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"requestBody": None}, 400),
        ({"responseBody": None}, 400),
        ({"responseBody": "text"}, 400),
        ({"responseBody": {"content": [{"text": SECRET}]}}, 502),
    ],
)
async def test_truefoundrys_unreadable_calls_are_refused(host, changes, status):
    reply = await host.post(TRUEFOUNDRY, json=truefoundry(**changes))
    assert reply.status_code == status
    assert status == 502 or next(iter(changes)) in reply.json()["error"]["message"]
    assert SECRET not in reply.text


# --- the FMS orchestrator ---------------------------------------------------------------------


async def test_fms_gets_detections_with_the_evidence_against_them(host):
    body = recorded("fms")
    first, second = (await host.post(FMS, json=body)).json()
    assert body["content"][first["start"] : first["end"]] == WRONG == first["text"]
    assert (first["detection"], second["detection"]) == ("contradicted", "unsupported")
    assert second["text"] == "Dogs are welcome."
    found = {item["name"]: item["value"] for item in first["evidence"]}
    assert found["note"] == "contradicted by: The Kestrel Hotel has 42 rooms."
    dogs = body | {"context": ["Dogs are welcome."]}
    texts = [item["text"] for item in (await host.post(FMS, json=dogs)).json()]
    assert texts == ["The Kestrel Hotel has 42 rooms.", WRONG]
    urls = await host.post(FMS, json=body | {"context_type": "url"})
    assert urls.status_code == 400


async def test_fms_is_counted_by_the_policy_of_checks(gateway, guarded):
    def lose(question):
        raise KnowledgeGraphError("the store is gone")

    guard = guarded(STRICT.changed(name="shop", unavailable="raise"), retriever=lose)
    client = gateway(guard, protocols="fms", evidence_mode="both")
    await client.post(FMS, json={"content": WRONG, "context": [RIGHT]})
    lines = (await client.get("/metrics")).text.splitlines()
    counted = [line for line in lines if line.startswith("kg_guardrail_requests_total{")]
    assert counted
    assert all('policy="annotate"' in line for line in counted)


async def test_a_reply_names_its_record(gateway, guarded, log_path):
    client = gateway(guarded(path=log_path), protocols="fms")
    reply = await client.post(FMS, json={"content": WRONG, "context": [RIGHT]})
    with open_log(log_path, read_only=True) as log:
        (record,) = log.records()
    assert reply.headers["x-guardrail-record"] == record.answer.id
