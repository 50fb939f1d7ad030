"""The live dashboard and the feedback it collects."""

import json

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app
from guardrail import GuardrailConfig, open_log
from tests.chains.conftest import QUESTION, TRUE_START, scripted_guard


@pytest.fixture
def logged(tmp_path):
    """A gateway with a key, over a guardrail that has recorded one answer."""
    config = GuardrailConfig(log=tmp_path / "scores.sqlite")
    with scripted_guard(config=config) as guard:
        guard.check(question=QUESTION, answer=TRUE_START)
        app = create_app(guard, GatewaySettings(keys=("secret",)))
        transport = httpx.ASGITransport(app)
        yield httpx.AsyncClient(transport=transport, base_url="http://gateway"), config.log.path


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


@pytest.mark.parametrize(
    ("body", "status"), [({"record_id": "none", "thumb": 1}, 404), ({"thumb": "x"}, 400)]
)
async def test_feedback_that_fits_no_record_is_refused(logged, body, status):
    client, _ = logged
    headers = {"authorization": "Bearer secret"}
    reply = await client.post("/v1/feedback", json=body, headers=headers)
    assert reply.status_code == status


async def test_feedback_posted_as_a_form_is_refused(logged):
    client, _ = logged
    headers = {"authorization": "Bearer secret", "content-type": "text/plain"}
    body = json.dumps({"record_id": "any", "thumb": 1})
    assert (await client.post("/v1/feedback", content=body, headers=headers)).status_code == 415


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
