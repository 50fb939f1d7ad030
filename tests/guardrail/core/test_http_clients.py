"""What the environment says of proxies and certificates is one clear error where it is wrong."""

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app
from guardrail import GuardrailConfig
from guardrail.core.errors import ConfigError
from guardrail.core.http_clients import reading_environment
from guardrail.models.openai import OpenAIModel
from kg import open_graph


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
