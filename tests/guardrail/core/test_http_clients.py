"""Clients of endpoints, and the limit of their rate."""

from __future__ import annotations

import select
import socket
import socketserver
import threading
import traceback

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app
from guardrail import GuardrailConfig
from guardrail.core import http_clients
from guardrail.core.errors import ConfigError, GraphUnavailableError, JudgeError, ModelError
from guardrail.core.http_clients import TokenBucket, open_client, openai_errors, reading_environment
from guardrail.models.openai import OpenAIModel
from kg import open_graph, open_graphs
from kg.opening import EndpointSettings
from tests.chains.fake_openai import FakeOpenAI, served
from tests.clock import HandClock


def endpoint():
    return open_graph("http://127.0.0.1:9/sparql")


def gateway():
    settings = GatewaySettings(upstream="http://127.0.0.1:9/v1")
    return create_app(GuardrailConfig(graph={"location": "none"}, judge="none"), settings)


def model():
    return OpenAIModel("m", base_url="http://127.0.0.1:9/v1", api_key="none").warm_up()


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (endpoint, "NO_PROXY", "[::1]"),
        (gateway, "no_proxy", "localhost,[::1]"),
        *((make, "ALL_PROXY", "ftp://127.0.0.1:1080") for make in (endpoint, gateway, model)),
        *((make, "SSL_CERT_FILE", "/nowhere/ca.pem") for make in (endpoint, gateway, model)),
    ],
)
def test_what_cannot_be_used_is_named(make, name, value, monkeypatch):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as caught:
        make()
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_socks_names_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    monkeypatch.setitem(__import__("sys").modules, "socksio", None)
    with pytest.raises(ConfigError) as caught:
        endpoint()
    assert "ALL_PROXY" in str(caught.value)
    assert "socks]" in str(caught.value)


class SocksProxy(socketserver.StreamRequestHandler):
    """SOCKS 5 with a login (RFC 1928 and 1929)."""

    def handle(self):
        self.rfile.read(self.rfile.read(2)[1])  # the methods on offer
        self.wfile.write(b"\x05\x02")
        self.rfile.read(1)
        login = [self.rfile.read(self.rfile.read(1)[0]) for _ in range(2)]
        accepted = login == [b"ann", b"open-sesame"]
        self.wfile.write(b"\x01\x00" if accepted else b"\x01\x01")
        if not accepted:
            return
        _, host, port = self.rfile.read(4), self.rfile.read(4), self.rfile.read(2)
        with socket.create_connection((socket.inet_ntoa(host), int.from_bytes(port))) as target:
            self.wfile.write(b"\x05\x00\x00\x01" + host + port)
            other = {self.connection: target, target: self.connection}
            while ready := select.select([*other], [], [], 5.0)[0]:
                for end in ready:
                    if not (data := end.recv(65_536)):
                        return
                    other[end].sendall(data)


@pytest.fixture
def through_socks(monkeypatch):
    """A function that calls a model through the proxy with a password."""
    pytest.importorskip("socksio", reason="the extra 'socks' is not installed")

    def call(password):
        place = f"127.0.0.1:{proxy.server_address[1]}"
        monkeypatch.setenv("ALL_PROXY", f"socks5://ann:{password}@{place}")
        monkeypatch.setenv("NO_PROXY", "")
        messages = [{"role": "user", "content": "Hello"}]
        with open_client(f"{address}/v1", max_retries=0) as client, openai_errors("m", ModelError):
            return client.chat.completions.create(model="plain", messages=messages)

    with (
        socketserver.ThreadingTCPServer(("127.0.0.1", 0), SocksProxy) as proxy,
        served(FakeOpenAI().app) as address,
    ):
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield call
        proxy.shutdown()


def test_a_socks_proxy_with_a_login_is_used(through_socks):
    assert through_socks("open-sesame").choices[0].message.content


def test_a_socks_proxy_that_refuses_a_login_is_an_error_without_it(through_socks):
    wrong = "-".join(("open", "barley"))  # in no source line of the traceback
    with pytest.raises(ModelError) as caught:
        through_socks(wrong)
    assert wrong not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("make", [endpoint, gateway, model])
def test_what_can_be_used_is(make, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "::1,localhost,.example.org")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
    make()


def test_other_errors_are_left_alone(monkeypatch):
    for name in ("NO_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with pytest.raises(httpx.InvalidURL), reading_environment():
        httpx.URL("http://host:port")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_a_local_endpoint_needs_no_key_and_openai_s_own_does(monkeypatch):
    assert open_client("http://127.0.0.1:1/v1").api_key == "none"
    with pytest.raises(ConfigError):
        open_client()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:2/v1")
    assert str(open_client().base_url) == "http://127.0.0.1:2/v1/"
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert open_client("http://127.0.0.1:1/v1").api_key == "k"


def test_the_caller_chooses_the_kind_of_error():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
    client = open_client(address, max_retries=0)
    for kind in (JudgeError, ModelError):
        with pytest.raises(kind, match=address.removesuffix("/v1")), openai_errors("m", kind):
            client.models.list()


@pytest.mark.parametrize(("bypass", "named"), [("", True), ("127.0.0.1", False)])
def test_a_proxy_on_the_way_is_named_without_its_password(bypass, named, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://ann:sesame-77@127.0.0.1:9")
    monkeypatch.setenv("no_proxy", bypass)
    with pytest.raises(ModelError) as model, openai_errors("m", ModelError):
        open_client("http://127.0.0.1:1/v1", max_retries=0).models.list()
    settings = EndpointSettings(cache=None, deadline_s=0.3)
    with pytest.raises(GraphUnavailableError) as graph:
        open_graphs("http://127.0.0.1:1/sparql", settings=settings).entities(["urn:a"])
    for error in (model.value, graph.value):
        assert ("through the proxy http://***@127.0.0.1:9" in str(error)) == named
        assert "sesame" not in str(error)


def test_a_slow_endpoint_is_reported_as_one():
    with served(FakeOpenAI().app) as address:
        client = open_client(f"{address}/v1", timeout_s=0.2, max_retries=0)
        with pytest.raises(JudgeError, match="in time"), openai_errors("m", JudgeError):
            client.chat.completions.create(
                model="slow", messages=[{"role": "user", "content": "Hello"}]
            )


def test_a_bucket_begins_full_and_fills_with_time(monkeypatch):
    clock = HandClock().runs(monkeypatch, http_clients)
    bucket = TokenBucket(per_second=2.0, capacity=3.0)
    for _ in range(3):
        assert bucket.wait() == 0.0
        bucket.take()
    assert bucket.wait() == 0.5
    bucket.take()  # one that is still to come: the next waits behind it
    assert bucket.wait() == 1.0
    clock.sleep(60.0)
    for _ in range(3):
        assert bucket.wait() == 0.0
        bucket.take()
    assert bucket.wait() == 0.5
