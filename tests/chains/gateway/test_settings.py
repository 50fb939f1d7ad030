"""The gateway's settings: the option beats the environment, and that the file."""

import logging
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from chains.gateway import GatewaySettings, create_app, serving
from chains.gateway.settings import option_of, variable_of
from guardrail import ConfigError, GuardrailConfig
from guardrail.cli import app
from guardrail.commands import serving as serving_command
from guardrail.config import gateway_section

FILE = """
judge = "none"
graph = "none"

[gateway]
host = "127.0.0.1"
port = 0
workers = 1
upstream = "http://file/v1"
upstream_key = "up-file"
keys = ["one", "two"]
trusted_hosts = ["api.example.com", "*.example.org"]
style = "none"
stream_mode = "buffer"
inject = "facts"
evidence_mode = "both"
evidence_marks = ["<a>", "</a>"]
dry_run = true
caller = ["evidence", "tools"]
reasons = false
protocols = ["litellm", "fms"]
max_body_bytes = 1000
max_reply_bytes = 2000
timeout_s = 4.5
concurrency = 6
address_per_minute = 11

[gateway.tenants.shop]
keys = ["shop-key"]
policy = "annotate"

[gateway.routes.drafts]
models = "draft-*"
policy = "annotate"
"""
ALONE = typer.Typer(add_completion=False)
ALONE.command()(serving_command.serve)
OF_THE_GUARDRAIL = {"kg", "evidence", "config", "judge", "policy", "strictness", "log", "help"}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "guardrail.toml"
    path.write_text(FILE)
    return path


@pytest.fixture
def served(monkeypatch):
    """What ``guardrail serve`` would serve, and with which settings."""
    told = []
    monkeypatch.setattr(serving.uvicorn, "run", lambda *parts, **options: told.append(options))
    made = serving.create_app

    def create(guard, settings, **options):
        told.append((guard.config, settings))
        return made(guard, settings, **options)

    monkeypatch.setattr(serving, "create_app", create)
    return told


def serve(*arguments):
    done = CliRunner().invoke(app, ["serve", *arguments])
    if done.exception is not None:
        raise done.exception


def test_every_setting_is_an_option_and_every_option_a_setting():
    options = {
        name
        for param in get_command(ALONE).params
        for name in param.opts
        if param.name not in OF_THE_GUARDRAIL
    }
    assert options == {option_of(name) for name in GatewaySettings.model_fields}


def test_every_setting_may_stand_in_the_file(file, served):
    section = gateway_section(file)
    assert set(section) == set(GatewaySettings.model_fields)
    serve("--config", str(file))
    (config, settings), told = served
    assert (config.judge, config.graph.location) == ("none", "none")
    default = GatewaySettings()
    same = {name for name in section if getattr(settings, name) == getattr(default, name)}
    assert same == {"host", "workers"}
    assert settings.evidence_marks == ("<a>", "</a>")
    assert [key.get_secret_value() for key in settings.keys] == ["one", "two"]
    assert settings.upstream_key.get_secret_value() == "up-file"
    assert (told["host"], told["port"], told["timeout_graceful_shutdown"]) == ("127.0.0.1", 0, 30)


def test_the_option_beats_the_environment_and_that_the_file(file, served, monkeypatch):
    monkeypatch.setenv("GUARDRAIL_GATEWAY__UPSTREAM", "http://environment/v1")
    monkeypatch.setenv("GUARDRAIL_GATEWAY__STYLE", "footnotes")
    monkeypatch.setenv("GUARDRAIL_GATEWAY__KEYS", "three, four,")
    serve("--config", str(file), "--upstream", "http://option/v1/", "--no-dry-run")
    _, settings = served[0]
    assert settings.upstream == "http://option/v1"
    assert settings.style == "footnotes"
    assert [key.get_secret_value() for key in settings.keys] == ["three", "four"]
    assert settings.dry_run is False
    assert settings.timeout_s == 4.5
    assert "three" not in repr(settings)


def test_the_guardrails_own_settings_pass_over_the_gateways():
    settings = GuardrailConfig.from_env({"GUARDRAIL_GATEWAY__KEYS": "a", "GUARDRAIL_JUDGE": "none"})
    assert settings.judge == "none"


def test_keys_of_the_file_stay_out_of_the_guardrails_settings(file):
    """Those are handed to workers, written to logs and serialised with a chain."""
    config = GuardrailConfig.from_toml(file, environ={})
    assert config.judge == "none"
    for key in ("one", "shop-key", "up-file"):
        assert f'"{key}"' not in config.model_dump_json()


@pytest.mark.parametrize(
    ("section", "environ", "options", "message"),
    [
        ({"upstraem": "x"}, {}, {}, r"\[gateway\] upstraem: .*did you mean '\[gateway\] upstream'"),
        (
            {},
            {"GUARDRAIL_GATEWAY__KEY": "x"},
            {},
            "GUARDRAIL_GATEWAY__KEY: .* 'GUARDRAIL_GATEWAY__KEYS'",
        ),
        ({}, {"GUARDRAIL_GATEWAY__PROT": "1"}, {}, "'GUARDRAIL_GATEWAY__PORT'"),
        ({"evidence_marks": ["<c>", "<c>"]}, {}, {}, "evidence_marks: .*two delimiters"),
        ({}, {}, {"evidence_marks": "<c>"}, "evidence-marks: .*two delimiters that differ"),
        ({"zzz": 1}, {}, {}, r"\[gateway\] zzz: unknown setting; see guardrail serve"),
        ({"port": 70_000}, {}, {}, r"\[gateway\] port: .*less than or equal to 65535"),
        (
            {"port": 1},
            {"GUARDRAIL_GATEWAY__PORT": "x"},
            {},
            "^GUARDRAIL_GATEWAY__PORT: .*valid integer",
        ),
        (
            {},
            {"GUARDRAIL_GATEWAY__UPSTREAM": "file:///etc/passwd"},
            {},
            "GUARDRAIL_GATEWAY__UPSTREAM: ",
        ),
        ({}, {}, {"protocols": ["litelm"]}, "--protocol: .*did you mean 'litellm'"),
        ({"trusted_hosts": ["http://a"]}, {}, {}, "trusted_hosts: 'http://a' is not a host"),
        ({"trusted_hosts": ["a.*.b"]}, {}, {}, "trusted_hosts: 'a"),
    ],
)
def test_what_is_wrong_is_named_as_it_was_given(section, environ, options, message):
    with pytest.raises(ConfigError, match=message):
        GatewaySettings.from_env(section=section, environ=environ, options=options)


def test_no_key_is_told_in_an_error():
    with pytest.raises(ConfigError) as raised:
        GatewaySettings.from_env(section={"keys": [["s3cret"]]}, environ={})
    assert "s3cret" not in str(raised.value)


def test_a_misspelled_section_names_the_right_one(tmp_path):
    path = tmp_path / "guardrail.toml"
    path.write_text("[gatway]\nport = 1\n")
    with pytest.raises(ConfigError, match="did you mean 'gateway'"):
        GuardrailConfig.from_toml(path, environ={})
    path.write_text("gateway = 1\n")
    with pytest.raises(ConfigError, match=r"must be a section, \[gateway\]"):
        gateway_section(path)


def test_help_and_reference_name_every_setting():
    reference = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text("utf-8")
    for name in GatewaySettings.model_fields:
        assert f"\n`{name}` |" in reference
        assert variable_of(name) == f"GUARDRAIL_GATEWAY__{name.upper()}"


@pytest.mark.parametrize(
    ("host", "status"),
    [("api.example.com", 200), ("b.example.org:8000", 200), ("evil.example", 400)],
)
@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/dashboard"])
async def test_other_hosts_are_refused(guard, host, status, path):
    settings = GatewaySettings(trusted_hosts="api.example.com, *.example.org")
    client = httpx.AsyncClient(transport=httpx.ASGITransport(create_app(guard, settings)))
    assert (await client.get(f"http://{host}{path}")).status_code == status


def test_an_open_gateway_is_warned_of(served, caplog):
    config = GuardrailConfig(judge="none", graph={"location": "none"})
    with caplog.at_level(logging.WARNING):
        serving.run(config, GatewaySettings(host="0.0.0.0", port=0))
        assert "has no key" in caplog.text
        caplog.clear()
        serving.run(config, GatewaySettings(host="0.0.0.0", port=0, keys="k"))
    assert caplog.text == ""


def test_settings_are_read_without_the_extra_of_the_server():
    code = "import sys, chains.gateway.settings; print({'starlette', 'uvicorn'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in GatewaySettings.model_fields
        if name.endswith("_s") and not name.endswith("_per_s")
    ],
)
def test_a_time_longer_than_any_is_no_setting(name):
    with pytest.raises(ConfigError, match="less than or equal to"):
        GatewaySettings.from_env(options={name: 1e12})
