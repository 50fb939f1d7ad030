"""The live dashboard and the feedback it collects."""

import json

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app
from guardrail import GuardrailConfig
from guardrail.log.records import RecordFilter, open_log
from tests.chains.conftest import QUESTION, TRUE_START, scripted_guard
from tests.chains.fake_openai import FakeOpenAI, served


@pytest.fixture
def logged(tmp_path, in_process):
    """A gateway with a key, over a guardrail that has recorded one answer."""
    config = GuardrailConfig(log=tmp_path / "scores.sqlite")
    with scripted_guard(config=config) as guard:
        guard.check(question=QUESTION, answer=TRUE_START)
        app = create_app(guard, GatewaySettings(keys=("secret",)))
        yield in_process(app), config.log.path


async def test_the_dashboard_shows_the_log_to_whom_has_a_key(logged):
    client, _ = logged
    refused = await client.get("/dashboard")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Basic")
    shown = await client.get("/dashboard", auth=("anyone", "secret"))
    assert shown.status_code == 200
    assert QUESTION in shown.text
    assert "default-src 'none'" in shown.headers["content-security-policy"]


async def test_feedback_is_stored_beside_its_record(logged):
    client, path = logged
    log = open_log(path)
    (record,) = log.records()
    body = {"record_id": record.id, "sentence": 0, "thumb": -1, "correction": "A novelist."}
    stored = await client.post("/v1/feedback", json=body, auth=("anyone", "secret"))
    assert stored.status_code == 200
    (kept,) = log.feedback()
    assert (kept.thumb, kept.correction) == (-1, "A novelist.")
    log.close()


@pytest.fixture
def recording(tmp_path, in_process):
    """A gateway that records, in front of a model."""
    config = GuardrailConfig(log=tmp_path / "scores.sqlite")
    with scripted_guard(config=config) as guard, served(FakeOpenAI().app) as url:
        app = create_app(guard, GatewaySettings(upstream=f"{url}/v1"))
        yield in_process(app), config.log.path


ASKED = {"question": QUESTION, "answer": TRUE_START}
CHAT = {"model": "plain", "messages": [{"role": "user", "content": QUESTION}]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("checks", ASKED),
        ("checks", ASKED | {"id": "mine"}),
        ("rank", {"question": QUESTION, "answers": [TRUE_START, "She was a pilot."]}),
        ("chat/completions", CHAT),
        ("responses", {"model": "plain", "input": QUESTION}),
    ],
)
async def test_feedback_takes_the_id_that_the_caller_was_given(recording, path, body):
    client, log_path = recording
    reply = await client.post(f"/v1/{path}", json=body)
    first, *_ = reply.headers["x-guardrail-record"].split(", ")
    assert f'"id":"{first}"' in reply.text.replace('"id": "', '"id":"')
    said = {"record_id": first, "thumb": "down"}
    stored = await client.post("/v1/feedback", json=said)
    assert stored.status_code == 200, stored.text
    log = open_log(log_path)
    (kept,) = log.feedback()
    assert [item.answer.id for item in log.records(RecordFilter(id=kept.record_id))] == [first]
    log.close()


async def test_a_stream_tells_its_id_in_its_last_event(recording):
    client, _ = recording
    reply = await client.post("/v1/chat/completions", json=CHAT | {"stream": True})
    lines = [line for line in reply.text.splitlines() if '"guardrail"' in line]
    told = json.loads(lines[-1].removeprefix("data: "))["choices"][0]["delta"]["guardrail"]["id"]
    stored = await client.post("/v1/feedback", json={"record_id": told, "thumb": 1})
    assert stored.status_code == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_ids_of_a_gateway_behind_this_one_stay_there(guard, stream):
    def behind(request):
        message = {"role": "assistant", "content": TRUE_START}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        head = {"x-guardrail-record": "theirs"}
        if stream:
            head["content-type"] = "text/event-stream"
            return httpx.Response(200, headers=head, text="data: [DONE]\n\n")
        return httpx.Response(200, headers=head, json={"choices": [choice]})

    upstream = httpx.AsyncClient(transport=httpx.MockTransport(behind))
    app = create_app(guard, GatewaySettings(upstream="http://model/v1"), client=upstream)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://gateway"
    ) as client:
        reply = await client.post("/v1/chat/completions", json=CHAT | {"stream": stream})
    assert reply.status_code == 200
    assert "x-guardrail-record" not in reply.headers


async def test_an_id_that_no_header_can_hold_stands_in_the_body_alone(recording):
    client, _ = recording
    for name in ("eins, zwei", "ü", "a\r\nb: c"):
        reply = await client.post("/v1/checks", json=ASKED | {"id": name})
        assert reply.json()["id"] == name
        assert "x-guardrail-record" not in reply.headers


async def test_feedback_before_its_record_is_accepted(logged):
    client, _ = logged
    said = {"record_id": "0" * 32, "thumb": 1}
    reply = await client.post("/v1/feedback", json=said, auth=("anyone", "secret"))
    assert reply.status_code == 202


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"record_id": "r", "thumb": "sideways"}, '1 or -1, "up" or "down"'),
        ({"record_id": "r", "thumbs": 1}, "did you mean 'thumb'?"),
        ({"record_id": "r"}, "give a thumb"),
    ],
)
async def test_what_is_no_feedback_is_told_in_words(logged, body, says):
    client, _ = logged
    reply = await client.post("/v1/feedback", json=body, auth=("anyone", "secret"))
    assert reply.status_code == 400
    assert says in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "status"), [({"record_id": "none", "thumb": 1}, 404), ({"thumb": "x"}, 400)]
)
async def test_feedback_that_fits_no_record_is_refused(logged, body, status):
    client, _ = logged
    headers = {"authorization": "Bearer secret"}
    reply = await client.post("/v1/feedback", json=body, headers=headers)
    assert reply.status_code == status


async def test_without_a_log_the_dashboard_says_what_to_set(guard):
    transport = httpx.ASGITransport(create_app(guard, GatewaySettings()))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        reply = await client.get("/dashboard")
    assert reply.status_code == 200
    assert "guardrail serve --log scores.sqlite" in reply.text


@pytest.mark.parametrize("path", ["/dashboard", "/metrics"])
async def test_without_a_key_pages_are_closed_to_the_network(guard, path):
    for settings, status in (
        (GatewaySettings(host="0.0.0.0"), 403),
        (GatewaySettings(host="0.0.0.0", keys="k"), 401),
        (GatewaySettings(), 200),
    ):
        transport = httpx.ASGITransport(create_app(guard, settings))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            assert (await client.get(path)).status_code == status
            if settings.keys:
                for way in ({"x-api-key": "k"}, {"authorization": "Bearer k"}):
                    assert (await client.get(path, headers=way)).status_code == 200
