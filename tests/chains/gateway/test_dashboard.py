"""The dashboard of the score log, the feedback that it collects, and the list of calls."""

import json

import pytest

from guardrail.log.records import RecordFilter, open_log
from tests.chains.conftest import QUESTION, TRUE_START

CHECK = {"question": QUESTION, "answer": TRUE_START}
CHAT = {"model": "plain", "messages": [{"role": "user", "content": QUESTION}]}


@pytest.fixture
def recording(gateway, guarded, log_path):
    """A gateway with a key that records its answers."""
    return gateway(guarded(path=log_path), key="secret", keys="secret")


async def test_the_dashboard_shows_the_log_to_whoever_has_a_key(recording):
    await recording.post("/v1/checks", json=CHECK)
    refused = await recording.get("/dashboard", headers={"authorization": ""})
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Basic")
    shown = await recording.get("/dashboard", auth=("anyone", "secret"))
    assert shown.status_code == 200
    assert QUESTION in shown.text
    assert "default-src 'none'" in shown.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("checks", CHECK | {"id": "mine"}),
        ("rank", {"question": QUESTION, "answers": [TRUE_START, "She was a pilot."]}),
        ("chat/completions", CHAT),
        ("chat/completions", CHAT | {"stream": True}),
        ("responses", {"model": "plain", "input": QUESTION}),
    ],
)
async def test_feedback_names_the_id_of_the_reply(recording, log_path, route, body):
    reply = await recording.post(f"/v1/{route}", json=body)
    if "stream" in body:
        (line,) = [line for line in reply.text.splitlines() if '"guardrail"' in line]
        choice = json.loads(line.removeprefix("data: "))["choices"][0]
        first = choice["delta"]["guardrail"]["id"]
    else:
        first, *_ = reply.headers["x-guardrail-record"].split(", ")
        assert f'"id":"{first}"' in reply.text.replace('"id": "', '"id":"')
    body = {"record_id": first, "sentence": 0, "thumb": "down", "correction": "A novelist."}
    stored = await recording.post("/v1/feedback", json=body, auth=("anyone", "secret"))
    assert stored.status_code == 200, stored.text
    with open_log(log_path) as log:
        (kept,) = log.feedback()
        assert (kept.thumb, kept.correction) == (-1, "A novelist.")
        assert [r.answer.id for r in log.records(RecordFilter(id=kept.record_id))] == [first]


@pytest.mark.parametrize("name", ["eins, zwei", "ü", "a\r\nb: c"])
async def test_an_id_that_no_header_can_hold_is_in_the_body_alone(recording, name):
    reply = await recording.post("/v1/checks", json=CHECK | {"id": name})
    assert reply.json()["id"] == name
    assert "x-guardrail-record" not in reply.headers


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"record_id": "0" * 32, "thumb": 1}, 202, ""),  # its record may follow
        ({"record_id": "none", "thumb": 1}, 404, "no such record"),
        ({"record_id": "r", "thumb": "sideways"}, 400, '1 or -1, "up" or "down"'),
        ({"record_id": "r", "thumbs": 1}, 400, "did you mean 'thumb'?"),
        ({"record_id": "r"}, 400, "give a thumb"),
    ],
)
async def test_feedback_without_a_record_or_a_form(recording, body, status, message):
    reply = await recording.post("/v1/feedback", json=body)
    assert reply.status_code == status
    assert status == 202 or message in reply.json()["error"]["message"]


async def test_without_a_log_the_dashboard_shows_what_to_set(gateway):
    reply = await gateway().get("/dashboard")
    assert reply.status_code == 200
    assert "guardrail serve --log scores.sqlite" in reply.text


@pytest.mark.parametrize("page", ["/dashboard", "/metrics"])
@pytest.mark.parametrize(
    ("settings", "headers", "status"),
    [
        ({"host": "0.0.0.0"}, {}, 403),
        ({"host": "0.0.0.0", "keys": "k"}, {}, 401),
        ({"host": "0.0.0.0", "keys": "k"}, {"x-api-key": "k"}, 200),
        ({"host": "0.0.0.0", "keys": "k"}, {"authorization": "Bearer k"}, 200),
        ({}, {}, 200),
    ],
)
async def test_without_a_key_pages_are_closed_to_the_network(
    gateway, page, settings, headers, status
):
    assert (await gateway(**settings).get(page, headers=headers)).status_code == status


async def test_the_calls_are_listed_without_loading_anything(gateway):
    page = (await gateway(protocols="fms").get("/docs")).text
    assert "/v1/chat/completions" in page
    assert "/api/v1/text/context/doc" in page
    assert "<script" not in page
