"""Each example runs as a user would run it; remote models are a local server's."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from chains.gateway import GatewaySettings, create_app
from guardrail import STRICT, GuardrailConfig
from tests.chains.conftest import scripted_guard
from tests.chains.fake_openai import CANARY, FakeOpenAI, served
from tests.program import python

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str, **environment: str) -> str:
    """Run an example in a process of its own and return what it prints."""
    done = python(EXAMPLES / name, *arguments, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def endpoint():
    """The environment of a client of a server that speaks the OpenAI protocol."""
    with served(FakeOpenAI().app) as address:
        yield {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "k", "OPENAI_MODEL": "plain"}


def test_check_answers():
    lines = run("check_answers.py").splitlines()
    assert lines[0].startswith("supportive: ")
    assert "[NA]" in lines[2]


@pytest.mark.parametrize("name", ["langchain_chain.py", "langchain_agent.py"])
def test_langchain(name, endpoint):
    printed = run(name, **endpoint)
    assert CANARY not in printed
    assert "Mary Shelley was a" in printed
    assert "action: filter" in printed


def test_sampled_answers_are_ranked(endpoint):
    printed = run("rerank_answers.py", **endpoint)
    assert [line[:2] for line in printed.splitlines() if line[1:2] == "."] == ["1.", "2.", "3."]


def test_ask_a_model(endpoint):
    action, _, text = run("ask.py", **endpoint).splitlines()[0].partition(": ")
    assert action in {"pass", "annotate", "filter", "refuse"}
    assert text


def test_openai_client(endpoint):
    printed = run("openai_client.py", GUARDRAIL_JUDGE="none", **endpoint)
    assert printed.count("Her mother was Mary Wollstonecraft [1]") == 2
    assert "https://www.wikidata.org/wiki/Q47152" in printed
    assert CANARY not in printed


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_gateway_curl(endpoint):
    settings = GatewaySettings(upstream=endpoint["OPENAI_BASE_URL"])
    guarding = scripted_guard(config=GuardrailConfig(policy=STRICT))
    with guarding as guard, served(create_app(guard, settings)) as url:
        command = ["sh", EXAMPLES / "gateway_curl.sh"]
        environment = os.environ | endpoint | {"GATEWAY": url}
        printed = subprocess.check_output(command, env=environment, text=True, timeout=280)
    assert 'phase="output",policy="strict",result="filtered",tenant=""} 1.0' in printed
    assert '"ranking":[{"index":1' in printed
    assert CANARY not in printed
