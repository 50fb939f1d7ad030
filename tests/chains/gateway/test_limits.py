"""Slow and large requests hold up nobody, and no address takes all places."""

import asyncio
import gzip
import json
import os
import threading
import time
import tracemalloc
import zlib
from base64 import b64encode

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app, requests
from chains.gateway.callers import RateLimits
from chains.gateway.limits import LimitsMiddleware, gunzip
from chains.gateway.requests import RejectedError, address_of, in_reader_thread
from guardrail import InputError
from guardrail.core.documents import reading
from guardrail.core.workers import GivenUpError, stop_if_given_up
from tests.chains.conftest import QUESTION, TRUE_START
from tests.chains.fake_openai import connected, served
from tests.clock import PATIENCE_S, until

CHECK = {"question": QUESTION, "answer": TRUE_START}
JSON = {"content-type": "application/json"}
HEAD = (
    b"POST /v1/checks HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n"
    b"content-length: 1000\r\n\r\n{"
)


# --- bodies -----------------------------------------------------------------------------------


def slow_bodies(url, count):
    """Connections that have sent one byte of a body each, once the gateway reads them."""
    found = [connected(url, HEAD) for _ in range(count)]
    until(lambda: f"http_requests_in_work {count}.0" in httpx.get(f"{url}/metrics").text)
    return found


def test_slow_bodies_take_no_place_and_are_few_per_address(guard, monkeypatch):
    monkeypatch.setattr(LimitsMiddleware, "address_bodies", 9)
    with served(create_app(guard, GatewaySettings(concurrency=8))) as url:
        slow = slow_bodies(url, 8)
        assert httpx.post(f"{url}/v1/checks", json=CHECK, timeout=PATIENCE_S).status_code == 200
        monkeypatch.setattr(LimitsMiddleware, "address_bodies", 8)
        refused = httpx.post(f"{url}/v1/checks", json=CHECK, timeout=PATIENCE_S)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        for connection in slow:
            connection.close()
        until(lambda: "http_requests_in_work 0.0" in httpx.get(f"{url}/metrics").text)
        assert httpx.post(f"{url}/v1/checks", json=CHECK, timeout=PATIENCE_S).status_code == 200


@pytest.mark.parametrize(("grace", "seconds"), [(60.0, 0.5), (0.2, 120.0)], ids=["whole", "rate"])
def test_a_slow_body_ends(guard, monkeypatch, grace, seconds):
    monkeypatch.setattr(LimitsMiddleware, "grace_s", grace)
    monkeypatch.setattr(LimitsMiddleware, "body_s", seconds)
    with served(create_app(guard, GatewaySettings())) as url, connected(url, HEAD) as slow:
        reply = b""
        while piece := slow.recv(65_536):
            reply += piece
    assert b" 408 " in reply.splitlines()[0]
    assert b"request_timeout" in reply


async def test_large_bodies_are_refused_as_soon_as_they_are_large(gateway):
    async def endless():
        while True:
            yield b" " * 1000

    client = gateway(max_body_bytes=5000)
    for content in (b" " * 6000, endless()):
        reply = await client.post("/v1/chat/completions", content=content, headers=JSON)
        assert reply.status_code == 413
        assert reply.json()["error"]["code"] == "request_too_large"


async def test_bodies_in_pieces_and_in_gzip_are_read(gateway):
    body = json.dumps(CHECK).encode()

    async def pieces():
        for start in range(0, len(body), 20):
            await asyncio.sleep(0.01)
            yield body[start : start + 20]

    members = gzip.compress(body[:20], mtime=0) + gzip.compress(body[20:])
    packed = {"content-encoding": "gzip"}
    for content, more in ((pieces(), {}), (gzip.compress(body), packed), (members, packed)):
        reply = await gateway().post("/v1/checks", content=content, headers=JSON | more)
        assert [one["category"] for one in reply.json()["sentences"]] == ["supportive"]


@pytest.mark.parametrize(
    ("content", "encoding", "status", "code"),
    [
        (gzip.compress(b" " * 50_000_000, mtime=0), "gzip", 413, "request_too_large"),
        (gzip.compress(b"{}", mtime=0)[:-6], "gzip", 400, "invalid_body"),
        (gzip.compress(b"{}", mtime=0) + b"\0" * 9, "gzip", 400, "invalid_body"),
        (gzip.compress(b"") * 1_000 + gzip.compress(b"{}"), "gzip", 400, "invalid_body"),
        (b"no gzip", "gzip", 400, "invalid_body"),
        (b"{}", "br", 415, "unsupported_encoding"),
        (b"{}", "gzip, gzip", 415, "unsupported_encoding"),
    ],
)
async def test_other_encodings_are_refused(gateway, content, encoding, status, code):
    headers = JSON | {"content-encoding": encoding}
    client = gateway(max_body_bytes=64_000)
    reply = await client.post("/v1/checks", content=content, headers=headers)
    assert reply.status_code == status
    assert reply.json()["error"]["code"] == code


def test_a_bomb_is_unpacked_up_to_the_bound_alone():
    bomb = gzip.compress(b" " * 200_000_000, mtime=0)
    tracemalloc.start()
    with pytest.raises(RejectedError):
        gunzip(bomb, 1_000_000)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_a_bomb_of_empty_members_is_given_up():
    """200,000 of them in 4 MB took a minute, since what was left was copied for each."""
    member = gzip.compress(b"", mtime=0)
    assert gunzip(member * 31 + gzip.compress(b"{}"), 100) == b"{}"
    with pytest.raises(zlib.error):
        gunzip(member * 32 + gzip.compress(b"{}"), 100)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
@pytest.mark.parametrize("path", ["chat/completions", "checks", "rank", "embeddings", "feedback"])
async def test_a_body_that_a_page_may_send_unasked_is_refused(gateway, path, kind):
    headers = {"content-type": kind} if kind else {}
    reply = await gateway().post(f"/v1/{path}", content=b'{"answer": "x"}', headers=headers)
    assert reply.status_code == 415


# --- rates and places -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "served_at_once"),
    [({"address_per_minute": 2}, 2), ({"concurrency": 4}, 2), ({"concurrency": 4, "keys": "k"}, 4)],
)
async def test_an_address_has_its_requests_a_minute(gateway, settings, served_at_once):
    """And without keys no address takes all places."""
    client = gateway(key="k", **settings)
    calls = [client.post("/v1/checks", json=CHECK) for _ in range(4)]
    codes = sorted([reply.status_code for reply in await asyncio.gather(*calls)])
    assert codes == [200] * served_at_once + [429] * (4 - served_at_once)


async def test_calls_of_other_protocols_have_the_same_limits(gateway):
    client = gateway(protocols="fms", max_body_bytes=10)
    assert (await client.post("/api/v1/text/context/doc", json=CHECK)).status_code == 413


def test_addresses_of_one_network_are_one_caller():
    hosts = ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1", "10.0.0.1", "10.0.0.2")
    first, *others = found = [address_of({"client": (host, 1)}) for host in hosts]
    assert (others[0], len(set(found))) == (first, 4)
    assert address_of({}) == ""


def test_rates_of_many_names_take_little_room():
    rates = RateLimits(most_names=100)
    for name in (*range(1_000), 0):  # which is forgotten
        rates.take(name, 1.0)
    for name, rate, seconds in ((999, 1.0, range(51, 61)), ("a", 1e-320, [1_000_000])):
        with pytest.raises(RejectedError) as raised:
            rates.take(name, rate)
        assert int(raised.value.headers["retry-after"]) in seconds


# --- reading of evidence ----------------------------------------------------------------------

LATHE = {"question": "", "answer": "The Lathe 2 costs 5200 euros."}
PAGE = {"filename": "a.html", "file_data": b64encode(b"<p>It is heavy.</p>").decode()}
POOL = min(31, (os.cpu_count() or 1) + 4)
"""Threads that an event loop has for short work, and fewer than those that read."""


async def test_documents_that_wait_keep_no_other_call_waiting(gateway):
    client, room = gateway(), reading._ROOM
    taken = [room.acquire() for _ in range(reading.DOCUMENTS_AT_ONCE)]
    document = LATHE | {"evidence": [{"file": PAGE}]}
    slow = [asyncio.ensure_future(client.post("/v1/checks", json=document)) for _ in range(POOL)]
    try:
        await asyncio.sleep(1)  # all of them wait for a place to be read in
        light = await client.post("/v1/checks", json=LATHE | {"passages": ["It is heavy."]})
        assert not any(call.done() for call in slow)
    finally:
        for _ in taken:
            room.release()
    assert light.status_code == 200
    assert {reply.status_code for reply in await asyncio.gather(*slow)} == {200}


async def test_reading_that_takes_too_long_is_refused_and_stops(monkeypatch):
    monkeypatch.setattr(requests, "READ_S", 0.2)
    stopped = threading.Event()

    def read():
        while True:
            time.sleep(0.01)
            try:
                stop_if_given_up()
            except GivenUpError:
                stopped.set()
                raise

    with pytest.raises(InputError, match="to read; send less of it"):
        await in_reader_thread(read)
    assert await asyncio.to_thread(stopped.wait, PATIENCE_S)
    assert await in_reader_thread(str.upper, "a.pdf") == "A.PDF"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (LATHE | {f"k{number}": 1 for number in range(50_000)}, "50,000 values or fields are not"),
        (LATHE | {"passages": [1] * 50_000}, "passages.0"),
        (LATHE | {"triples": ["x"] * 50_000}, "triples.0"),
        ({"answers": [1] * 50_000}, "answers.0"),
        (LATHE | {"x" * 50_000: 1}, "there is no field 'xxx"),
    ],
    ids=["fields", "passages", "triples", "answers", "name"],
)
async def test_thousands_of_errors_get_a_short_reply(gateway, body, message):
    reply = await gateway().post("/v1/rank" if "answers" in body else "/v1/checks", json=body)
    assert reply.status_code == 400
    assert message in reply.json()["error"]["message"]
    assert len(reply.text) < 2_000
