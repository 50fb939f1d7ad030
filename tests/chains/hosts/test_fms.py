"""The FMS orchestrator's detector: an answer with its context, to what does not hold."""

from tests.chains.hosts.asking import Asked, recorded
from tests.chains.hotel import WRONG

PATH = "http://gateway/api/v1/text/context/doc"


async def test_detections_in_order_with_what_speaks_against_them(empty, monkeypatch):
    asked = Asked(empty, monkeypatch, protocols="fms")
    body = recorded("fms")
    headers = {"detector-id": "grounding"}
    first, second = (await asked.http.post(PATH, json=body, headers=headers)).json()
    assert body["content"][first["start"] : first["end"]] == WRONG == first["text"]
    assert (first["detection"], second["detection"]) == ("contradicted", "unsupported")
    assert second["text"] == "Dogs are welcome."
    told = {item["name"]: item["value"] for item in first["evidence"]}
    assert told["note"] == "contradicted by: The Kestrel Hotel has 42 rooms."


async def test_the_context_alone_counts(empty, monkeypatch):
    asked = Asked(empty, monkeypatch, protocols="fms")
    body = recorded("fms") | {"context": ["Dogs are welcome."]}
    found = (await asked.http.post(PATH, json=body)).json()
    assert [item["text"] for item in found] == ["The Kestrel Hotel has 42 rooms.", WRONG]
    urls = await asked.http.post(PATH, json=body | {"context_type": "url"})
    assert urls.status_code == 400
