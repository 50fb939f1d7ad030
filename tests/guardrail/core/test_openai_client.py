"""The client of every OpenAI-compatible endpoint, and the errors that it raises."""

import socket

import pytest

from guardrail.core.errors import ConfigError, JudgeError, ModelError
from guardrail.core.http_clients import open_client, openai_errors
from tests.chains.fake_openai import FakeOpenAI, served


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


def test_a_slow_endpoint_is_reported_as_one():
    with served(FakeOpenAI().app) as address:
        client = open_client(f"{address}/v1", timeout_s=0.2, max_retries=0)
        with pytest.raises(JudgeError, match="in time"), openai_errors("m", JudgeError):
            client.chat.completions.create(
                model="slow", messages=[{"role": "user", "content": "Hello"}]
            )
