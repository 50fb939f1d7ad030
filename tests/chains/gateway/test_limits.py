"""Slow and large requests hold up nobody, and no address takes all places."""

import asyncio
import gzip
import json
import socket
import tracemalloc

import httpx
import pytest

from chains.gateway import GatewaySettings, callers, create_app, limits, serving
from chains.gateway.callers import RateLimits, address_of
from chains.gateway.requests import RejectedError
from chains.gateway.serving import HeadTimeoutProtocol
from guardrail import GuardrailConfig
from tests.chains.conftest import QUESTION, TRUE_START
from tests.chains.fake_openai import served
from tests.clock import PATIENCE_S, until

ASKED = {"question": QUESTION, "answer": TRUE_START}
HEAD = (
    b"POST /v1/checks HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n"
    b"content-length: 1000\r\n\r\n{"
)


def connected(url, start=b""):
    host, _, port = url.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    connection.sendall(start)
    return connection


def slow_bodies(url, count):
    """Connections that have sent one byte of a body each, once the gateway reads them."""
    found = [connected(url, HEAD) for _ in range(count)]
    until(lambda: f"http_requests_in_work {count}.0" in httpx.get(f"{url}/metrics").text)
    return found


def test_bodies_that_do_not_come_take_no_place(guard):
    with served(create_app(guard, GatewaySettings(concurrency=8))) as url:
        slow = slow_bodies(url, 8)
        assert httpx.post(f"{url}/v1/checks", json=ASKED, timeout=PATIENCE_S).status_code == 200
        for connection in slow:
            connection.close()


@pytest.mark.parametrize(
    ("grace", "seconds"), [(60.0, 0.5), (0.2, 120.0)], ids=["as a whole", "by its rate"]
)
def test_a_slow_body_ends(guard, monkeypatch, grace, seconds):
    monkeypatch.setattr(limits, "GRACE_S", grace)
    monkeypatch.setattr(limits, "BODY_S", seconds)
    with served(create_app(guard, GatewaySettings())) as url:
        (slow,) = slow_bodies(url, 1)
        said = b""
        while piece := slow.recv(65_536):
            said += piece
        assert b" 408 " in said.splitlines()[0]
        slow.close()
        assert b"request_timeout" in said


async def test_a_body_in_good_time_is_read_piece_by_piece(guard):
    async def pieces():
        for piece in (b'{"question": "", ', b'"answer": ', b'"She was a writer."}'):
            await asyncio.sleep(0.02)
            yield piece

    async with client_of(guard) as client:
        headers = {"content-type": "application/json"}
        reply = await client.post("/v1/checks", content=pieces(), headers=headers)
    assert reply.status_code == 200


GZIPPED = {"content-type": "application/json", "content-encoding": "gzip"}


async def test_bodies_in_gzip_are_read(guard):
    body = json.dumps(ASKED).encode()
    members = gzip.compress(body[:20], mtime=0) + gzip.compress(body[20:])
    async with client_of(guard) as client:
        for packed in (gzip.compress(body, mtime=0), members):
            reply = await client.post("/v1/checks", content=packed, headers=GZIPPED)
            assert reply.status_code == 200
            assert [one["category"] for one in reply.json()["sentences"]] == ["supportive"]


@pytest.mark.parametrize(
    ("content", "encoding", "status", "code"),
    [
        (gzip.compress(b" " * 50_000_000, mtime=0), "gzip", 413, "request_too_large"),
        (gzip.compress(b"{}" * 40_000, mtime=0), "gzip", 413, "request_too_large"),
        (gzip.compress(b"{}", mtime=0)[:-6], "gzip", 400, "invalid_body"),
        (b"no gzip", "gzip", 400, "invalid_body"),
        (b"{}", "br", 415, "unsupported_encoding"),
        (b"{}", "gzip, gzip", 415, "unsupported_encoding"),
    ],
)
async def test_bodies_that_unpack_to_too_much_or_to_nothing(guard, content, encoding, status, code):
    async with client_of(guard, max_body_bytes=64_000) as client:
        headers = {"content-type": "application/json", "content-encoding": encoding}
        reply = await client.post("/v1/checks", content=content, headers=headers)
    assert reply.status_code == status
    assert reply.json()["error"]["code"] == code


def test_a_bomb_is_unpacked_up_to_the_bound_alone():
    bomb = gzip.compress(b" " * 200_000_000, mtime=0)
    tracemalloc.start()
    with pytest.raises(RejectedError):
        limits.gunzip(bomb, 1_000_000)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def client_of(guard, **settings):
    transport = httpx.ASGITransport(create_app(guard, GatewaySettings(**settings)))
    return httpx.AsyncClient(transport=transport, base_url="http://gateway")


def test_one_address_sends_few_bodies_at_once(guard, monkeypatch):
    monkeypatch.setattr(limits, "ADDRESS_BODIES", 2)
    with served(create_app(guard, GatewaySettings())) as url:
        slow = slow_bodies(url, 2)
        refused = httpx.post(f"{url}/v1/checks", json=ASKED, timeout=PATIENCE_S)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        for connection in slow:
            connection.close()
        until(lambda: "http_requests_in_work 0.0" in httpx.get(f"{url}/metrics").text)
        assert httpx.post(f"{url}/v1/checks", json=ASKED, timeout=PATIENCE_S).status_code == 200


async def test_one_address_has_its_number_a_minute(guard):
    async with client_of(guard, address_per_minute=2) as client:
        codes = [(await client.post("/v1/checks", json=ASKED)).status_code for _ in range(4)]
    assert codes == [200, 200, 429, 429]


@pytest.mark.parametrize(
    ("settings", "served_at_once"),
    [({}, 2), ({"keys": "k"}, 4)],
    ids=["without keys", "with keys"],
)
async def test_without_keys_no_address_takes_all_places(guard, settings, served_at_once):
    async with client_of(guard, concurrency=4, **settings) as client:
        client.headers["authorization"] = "Bearer k"
        calls = [client.post("/v1/checks", json=ASKED) for _ in range(4)]
        codes = [reply.status_code for reply in await asyncio.gather(*calls)]
    assert codes.count(200) == served_at_once
    assert codes.count(429) == 4 - served_at_once


async def test_paths_of_other_protocols_pass_the_same_door(guard):
    async with client_of(guard, protocols="fms", max_body_bytes=10, keys="k") as client:
        path = "/api/v1/text/context/doc"
        assert (await client.post(path, json=ASKED)).status_code == 401
        reply = await client.post(path, json=ASKED, headers={"x-api-key": "k"})
        assert reply.status_code == 413


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
@pytest.mark.parametrize("path", ["chat/completions", "checks", "rank", "embeddings", "feedback"])
async def test_a_body_that_a_page_may_send_unasked_is_refused(guard, path, kind):
    headers = {"content-type": kind} if kind else {}
    async with client_of(guard, upstream="http://127.0.0.1:1/v1") as client:
        reply = await client.post(f"/v1/{path}", content=b'{"answer": "x"}', headers=headers)
    assert reply.status_code == 415


def test_addresses_of_one_network_are_one_caller():
    def of(host):
        return address_of({"client": (host, 1)})

    assert of("2001:db8:1:2::1") == of("2001:db8:1:2:ffff::9") != of("2001:db8:1:3::1")
    assert of("10.0.0.1") != of("10.0.0.2")
    assert address_of({}) == ""


def test_rates_of_many_names_take_little_room(monkeypatch):
    monkeypatch.setattr(callers, "REMEMBERED", 100)
    rates = RateLimits()
    for name in range(1_000):
        rates.take(name, 1.0)
    with pytest.raises(RejectedError) as raised:
        rates.take(999, 1.0)
    assert int(raised.value.headers["retry-after"]) > 50
    rates.take(0, 1.0)  # forgotten


def test_the_wait_for_a_tiny_rate_is_a_number():
    with pytest.raises(RejectedError) as raised:
        RateLimits().take("a", 1e-320)
    assert raised.value.headers["retry-after"] == "1000000"


STARTS = {
    "nothing": b"",
    "half a head": b"GET /healthz HTTP/1.1\r\nhost: gateway\r\n",
    "a second head": b"GET /healthz HTTP/1.1\r\nhost: gateway\r\n\r\nGET /healthz",
}


@pytest.fixture
def gateway(guard):
    with served(create_app(guard, GatewaySettings()), http=HeadTimeoutProtocol) as url:
        yield url


@pytest.mark.parametrize("start", STARTS.values(), ids=list(STARTS))
def test_a_late_head_ends_its_connection(gateway, monkeypatch, start):
    monkeypatch.setattr(serving, "HEAD_S", 0.2)
    with connected(gateway, start) as slow:
        while slow.recv(65_536):
            pass  # until the server closes it
    assert httpx.get(f"{gateway}/healthz").status_code == 200
    until(lambda: not HeadTimeoutProtocol.waiting)


def test_a_head_in_pieces_is_answered(gateway):
    with connected(gateway, STARTS["half a head"]) as slow:
        until(lambda: len(HeadTimeoutProtocol.waiting) == 1)
        slow.sendall(b"\r\n")
        assert slow.recv(65_536).startswith(b"HTTP/1.1 200")
        until(lambda: not HeadTimeoutProtocol.waiting)


def test_the_oldest_of_many_waiting_connections_end(gateway, monkeypatch):
    monkeypatch.setattr(serving, "MOST_WAITING", 3)
    slow = []
    for count in range(1, 6):
        slow.append(connected(gateway))
        until(lambda count=count: len(HeadTimeoutProtocol.waiting) == min(count, 3))
    assert slow[0].recv(1) == slow[1].recv(1) == b""
    assert httpx.get(f"{gateway}/healthz").status_code == 200
    for connection in slow:
        connection.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_gateway_is_served_with_these_limits(monkeypatch, workers):
    options = {}
    monkeypatch.setattr(serving.uvicorn, "run", lambda *args, **given: options.update(given))
    serving.run(GuardrailConfig(graph="none", judge="none"), GatewaySettings(workers=workers))
    assert options["http"] is HeadTimeoutProtocol
