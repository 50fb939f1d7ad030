"""What one request brings to be read keeps no other waiting, and has its end."""

import asyncio
import os
import threading
import time
from base64 import b64encode

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app, requests
from guardrail import Guardrail, GuardrailConfig, InputError
from guardrail.core.documents import reading
from guardrail.core.workers import GivenUpError, stop_if_given_up
from tests.clock import PATIENCE_S

ASKED = {"question": "", "answer": "The Lathe 2 costs 5200 euros."}
PAGE = {"filename": "a.html", "file_data": b64encode(b"<p>It is heavy.</p>").decode()}
POOL = min(31, (os.cpu_count() or 1) + 4)
"""Threads that an event loop has for short work, and fewer than those that read."""


@pytest.fixture(scope="module")
def guard():
    with Guardrail(GuardrailConfig(graph={"location": "none"}, judge="none")) as guard:
        yield guard


@pytest.fixture
async def client(guard):
    transport = httpx.ASGITransport(create_app(guard, GatewaySettings()))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        yield client


async def test_documents_that_are_waited_for_keep_no_other_call_waiting(client):
    room = reading._ROOM
    taken = [room.acquire() for _ in range(reading.AT_ONCE)]
    document = ASKED | {"evidence": [{"file": PAGE}]}
    slow = [asyncio.ensure_future(client.post("/v1/checks", json=document)) for _ in range(POOL)]
    try:
        await asyncio.sleep(1)  # all of them wait for a place to be read in
        light = await client.post("/v1/checks", json=ASKED | {"passages": ["It is heavy."]})
        assert not any(call.done() for call in slow)
    finally:
        for _ in taken:
            room.release()
    assert light.status_code == 200
    assert {reply.status_code for reply in await asyncio.gather(*slow)} == {200}


async def test_what_takes_too_long_to_read_is_refused_and_stops(monkeypatch):
    monkeypatch.setattr(requests, "READ_S", 0.2)
    stopped = threading.Event()

    def read(name):
        while True:
            time.sleep(0.01)
            try:
                stop_if_given_up()
            except GivenUpError:
                stopped.set()
                raise

    with pytest.raises(InputError, match=r"takes more than 0.2 s to read; send less of it"):
        await requests.in_reader_thread(read, "a.pdf")
    assert await asyncio.to_thread(stopped.wait, PATIENCE_S)
    assert await requests.in_reader_thread(str.upper, "a.pdf") == "A.PDF"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (ASKED | {f"k{number}": 1 for number in range(50_000)}, "50,000 values or fields are not"),
        (ASKED | {"passages": [1] * 50_000}, "passages.0"),
        (ASKED | {"triples": ["x"] * 50_000}, "triples.0"),
        ({"answers": [1] * 50_000}, "answers.0"),
        (ASKED | {"x" * 50_000: 1}, "there is no field 'xxx"),
    ],
    ids=["fields", "passages", "triples", "answers", "name"],
)
async def test_what_is_wrong_a_thousand_times_is_told_in_short(client, body, told):
    reply = await client.post("/v1/rank" if "answers" in body else "/v1/checks", json=body)
    message = reply.json()["error"]["message"]
    assert reply.status_code == 400
    assert told in message
    assert len(message) < 2_000
