"""TrueFoundry's custom guardrail: the request's tool results, and the reply in its own form."""

from tests.chains.hosts.asking import GUIDE, NOTES, PRICES, Asked, pages, recorded
from tests.chains.hotel import SECRET, WRONG

PATH = "http://gateway/truefoundry/guardrail"


async def told(guard, monkeypatch, body, **settings):
    asked = Asked(guard, monkeypatch, protocols="truefoundry", **settings)
    reply = await asked.http.post(PATH, json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def test_citations_have_title_and_url(empty, monkeypatch):
    reply = await told(empty, monkeypatch, recorded("truefoundry"))
    assert (reply["verdict"], reply["transformed"]) == (True, True)
    assert reply["result"]["id"] == "chatcmpl-9"
    message = reply["result"]["choices"][0]["message"]
    assert message["content"] == NOTES
    assert pages(message) == [GUIDE, PRICES]
    assert SECRET not in str(reply)


async def test_a_refusal_is_a_verdict_and_no_error(empty, monkeypatch):
    body = recorded("truefoundry")
    body["responseBody"]["choices"][0]["message"]["content"] = WRONG
    reply = await told(empty, monkeypatch, body)
    assert reply["verdict"] is False
    assert reply["message"].startswith(empty.config.policy.refusal)
    assert SECRET not in str(reply)
    bare = await told(empty, monkeypatch, body, reasons=False)
    assert bare == {"verdict": False, "message": empty.config.policy.refusal}


async def test_a_stream_is_judged_as_the_whole_that_the_host_made_of_it(empty, monkeypatch):
    body = recorded("truefoundry")
    body["requestBody"]["stream"] = True
    reply = await told(empty, monkeypatch, body)
    assert reply["result"]["choices"][0]["message"]["content"] == NOTES


async def test_before_a_request_nothing_is_judged(empty, monkeypatch):
    body = recorded("truefoundry")
    del body["responseBody"]
    assert await told(empty, monkeypatch, body) == {"verdict": True}


async def test_a_guardrail_that_validates_lets_nothing_out(empty, monkeypatch):
    """The host would leave the reply as it is, with what was removed from it."""
    for config in (None, {}, {"operation": "validate"}, "mutate"):
        body = recorded("truefoundry") | {"config": config}
        reply = await told(empty, monkeypatch, body)
        assert reply["verdict"] is False
        assert "Operation to Mutate" in reply["message"]
        assert await told(empty, monkeypatch, body, dry_run=True) == {"verdict": True}


async def test_what_cannot_be_read_is_refused(empty, monkeypatch):
    asked = Asked(empty, monkeypatch, protocols="truefoundry")
    for odd in ({"requestBody": None}, {"responseBody": None}, {"responseBody": "text"}):
        reply = await asked.http.post(PATH, json=recorded("truefoundry") | odd)
        assert reply.status_code == 400
        assert next(iter(odd)) in reply.json()["error"]["message"]
    strange = recorded("truefoundry") | {"responseBody": {"content": [{"text": SECRET}]}}
    reply = await asked.http.post(PATH, json=strange)
    assert reply.status_code >= 400
    assert SECRET not in reply.text
