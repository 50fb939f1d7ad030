"""The examples of the OpenAI client and of the gateway run as a user would run them."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chains.gateway import GatewaySettings, create_app
from guardrail import STRICT, GuardrailConfig
from tests.chains.conftest import CANARY, scripted_guard
from tests.chains.fake_openai import served

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_openai_client(upstream, monkeypatch, capsys):
    for name, value in {"BASE_URL": upstream, "API_KEY": "sk-test"}.items():
        monkeypatch.setenv(f"OPENAI_{name}", value)
    monkeypatch.setenv("OPENAI_MODEL", "plain")
    monkeypatch.setenv("GUARDRAIL_JUDGE", "none")
    monkeypatch.setattr(sys, "argv", ["openai_client.py"])
    runpy.run_path(str(EXAMPLES / "openai_client.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.count("Her mother was Mary Wollstonecraft [1]") == 2
    assert "https://www.wikidata.org/wiki/Q47152" in printed
    assert CANARY not in printed


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_gateway_curl(upstream):
    config = GuardrailConfig(policy=STRICT)
    with scripted_guard(config=config) as guard:
        app = create_app(guard, GatewaySettings(upstream=upstream))
        with served(app) as url:
            environ = os.environ | {"GATEWAY": url, "OPENAI_MODEL": "plain"}
            run = subprocess.run(
                ["sh", str(EXAMPLES / "gateway_curl.sh")],
                env=environ, capture_output=True, text=True, timeout=280, check=False,
            )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    assert 'phase="output",policy="strict",result="filtered",tenant=""} 1.0' in run.stdout
    assert '"ranking":[{"index":1' in run.stdout
    assert CANARY not in run.stdout
