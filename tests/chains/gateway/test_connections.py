"""Connections whose request does not come end, and keep nobody out."""

import socket

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app, serving
from chains.gateway.serving import HeadsInTime
from guardrail import GuardrailConfig
from tests.chains.fake_openai import served
from tests.clock import PATIENCE_S, until

STARTS = {
    "nothing": b"",
    "half a head": b"GET /healthz HTTP/1.1\r\nhost: gateway\r\n",
    "a second head": b"GET /healthz HTTP/1.1\r\nhost: gateway\r\n\r\nGET /healthz",
}


@pytest.fixture
def gateway(guard):
    with served(create_app(guard, GatewaySettings()), http=HeadsInTime) as url:
        yield url


def connected(url, start=b""):
    host, _, port = url.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    connection.sendall(start)
    return connection


@pytest.mark.parametrize("start", STARTS.values(), ids=list(STARTS))
def test_a_head_that_does_not_come_ends_its_connection(gateway, monkeypatch, start):
    monkeypatch.setattr(serving, "HEAD_S", 0.2)
    with connected(gateway, start) as slow:
        while slow.recv(65_536):
            pass  # until the server closes it
    assert httpx.get(f"{gateway}/healthz").status_code == 200
    until(lambda: not HeadsInTime.waiting)


def test_a_request_in_pieces_is_answered_and_no_longer_waited_for(gateway):
    with connected(gateway, STARTS["half a head"]) as slow:
        until(lambda: len(HeadsInTime.waiting) == 1)
        slow.sendall(b"\r\n")
        assert slow.recv(65_536).startswith(b"HTTP/1.1 200")
        until(lambda: not HeadsInTime.waiting)


def test_of_many_that_wait_the_oldest_end(gateway, monkeypatch):
    monkeypatch.setattr(serving, "MOST_WAITING", 3)
    slow = []
    for count in range(1, 6):
        slow.append(connected(gateway))
        until(lambda count=count: len(HeadsInTime.waiting) == min(count, 3))
    assert slow[0].recv(1) == slow[1].recv(1) == b""
    assert httpx.get(f"{gateway}/healthz").status_code == 200
    for connection in slow:
        connection.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_gateway_is_served_so(monkeypatch, workers):
    told = {}
    monkeypatch.setattr(serving.uvicorn, "run", lambda *parts, **options: told.update(options))
    serving.run(GuardrailConfig(graph="none", judge="none"), GatewaySettings(workers=workers))
    assert told["http"] is HeadsInTime
