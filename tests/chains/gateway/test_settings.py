"""The gateway's settings: options override the environment, which overrides the file."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from chains.gateway import GatewaySettings, serving
from chains.gateway.settings import option_of
from guardrail import ConfigError, GuardrailConfig
from guardrail.cli import app
from guardrail.commands import serving as serving_command
from guardrail.config import gateway_section

ALONE = typer.Typer(add_completion=False)
ALONE.command()(serving_command.serve)
OF_THE_GUARDRAIL = {
    *("kg", "evidence", "config", "judge", "policy", "strictness", "log", "dry_run", "help")
}


@pytest.fixture
def file():
    return Path(__file__).with_name("every_setting.toml")


@pytest.fixture
def serve(monkeypatch):
    """Runs ``guardrail serve`` up to the server; returns configuration, settings and options."""
    found = []
    monkeypatch.setattr(serving.uvicorn, "run", lambda *parts, **options: found.append(options))
    create_app = serving.create_app

    def create(guard, settings, **options):
        found.extend([guard.config, settings])
        return create_app(guard, settings, **options)

    monkeypatch.setattr(serving, "create_app", create)

    def run(*arguments):
        CliRunner().invoke(app, ["serve", *arguments], catch_exceptions=False)
        return found

    return run


def test_every_setting_is_an_option_and_every_option_a_setting():
    params = [item for item in get_command(ALONE).params if item.name not in OF_THE_GUARDRAIL]
    options = {name for param in params for name in param.opts}
    assert options == {option_of(name) for name in GatewaySettings.model_fields}


def test_the_file_may_hold_every_setting(file, serve):
    section = gateway_section(file)
    assert set(section) == set(GatewaySettings.model_fields)
    config, settings, options = serve("--config", str(file))
    assert (config.judge, config.graph.location) == ("none", "none")
    default = GatewaySettings()
    same = {name for name in section if getattr(settings, name) == getattr(default, name)}
    assert same == {"host", "workers"}
    assert settings.evidence_marks == ("<a>", "</a>")
    assert [key.get_secret_value() for key in settings.keys] == ["one", "two"]
    assert (options["host"], options["port"]) == ("127.0.0.1", 0)
    for key in ("one", "shop-key", "up-file"):  # workers, logs and chains get the configuration
        assert f'"{key}"' not in config.model_dump_json()


def test_options_override_the_environment_and_that_the_file(file, serve, monkeypatch):
    monkeypatch.setenv("GUARDRAIL_GATEWAY__UPSTREAM", "http://environment/v1")
    monkeypatch.setenv("GUARDRAIL_GATEWAY__STYLE", "footnotes")
    monkeypatch.setenv("GUARDRAIL_GATEWAY__KEYS", "three, four,")
    options = ("--upstream", "http://option/v1/", "--dry-run")
    config, settings, _ = serve("--config", str(file), *options)
    assert settings.upstream == "http://option/v1"
    assert settings.style == "footnotes"
    assert [key.get_secret_value() for key in settings.keys] == ["three", "four"]
    assert (config.policy.name, config.policy.dry_run) == ("strict", True)
    assert settings.timeout_s == 4.5
    assert "three" not in repr(settings)


@pytest.mark.parametrize(
    ("section", "environ", "options", "message"),
    [
        ({"upstraem": "x"}, {}, {}, r"\[gateway\] upstraem: .*did you mean '\[gateway\] upstream'"),
        ({"zzz": 1}, {}, {}, r"\[gateway\] zzz: unknown setting"),
        ({"port": 70_000}, {}, {}, r"\[gateway\] port: .*less than or equal to 65535"),
        ({"timeout_s": 1e12}, {}, {}, r"\[gateway\] timeout_s: .*less than or equal to"),
        ({"port": 1}, {"PORT": "x"}, {}, "^GUARDRAIL_GATEWAY__PORT: .*valid integer"),
        ({}, {"KEY": "x"}, {}, "GUARDRAIL_GATEWAY__KEY: .* 'GUARDRAIL_GATEWAY__KEYS'"),
        ({}, {"UPSTREAM": "file:///etc/passwd"}, {}, "GUARDRAIL_GATEWAY__UPSTREAM: "),
        ({"evidence_marks": ["<c>", "<c>"]}, {}, {}, "evidence_marks: .*two delimiters"),
        ({}, {}, {"evidence_marks": "<c>"}, "evidence-marks: .*two delimiters that differ"),
        ({}, {}, {"protocols": ["litelm"]}, "--protocol: .*'litellm'"),
        ({}, {}, {"routes": ["/v1/checks=strict"]}, "^--route: route '/v1/checks': "),
        ({"trusted_hosts": ["a"]}, {}, {}, "trusted_hosts: .*gone; check .* reverse proxy"),
        ({"routes": {"a": {"paths": "/v1/checks"}}}, {}, {}, "gone; name paths in calls"),
        ({"tenants": {"a b": {"keys": "k"}}}, {}, {}, "match pattern"),
        ({"tenants": {"key-1": {"keys": "k"}}}, {}, {}, "begin with 'key-'"),
        ({"tenants": {"a": {"keys": "s3cret"}}, "keys": ["s3cret"]}, {}, {}, "the same key"),
        ({"tenants": {"a": {"keys": "s3cret"}, "b": {"keys": "s3cret"}}}, {}, {}, "the same key"),
        ({"tenants": {"a": {"keys": "s3cret", "policy": "strickt"}}}, {}, {}, "mean 'strict'"),
        ({"tenants": {"a": {"keys": "s3cret", "policy": {"deadline": 1}}}}, {}, {}, "'deadline_s'"),
        ({"tenants": {"a": {"keys": [""]}}}, {}, {}, "empty"),
        ({"routes": {"a": {"policy": "strict"}}}, {}, {}, "Field required"),
        ({"routes": {"a": {"calls": "x", "policy": {"treshold": 1}}}}, {}, {}, "thresholds"),
        ({"routes": {"a": {"calls": "/v1/checks", "policy": "strict"}}}, {}, {}, "choose the"),
        ({"routes": {"a": {"calls": "/v1/chat/completion"}}}, {}, {}, "'/v1/chat/completions'"),
        ({"routes": {"a": {"calls": "/v1/embeddings"}}}, {}, {}, "judged at '/v1/embeddings'"),
        ({"routes": {"a": {"calls": "/portkey/webhook"}}}, {}, {}, "nothing is judged at"),
        ({"routes": "gpt-4o*"}, {}, {}, "MODEL=POLICY"),
        ({"keys": [["s3cret"]]}, {}, {}, "valid string"),
        ({"caller": "tool"}, {}, {}, "did you mean 'tools'"),
    ],
)
def test_an_error_is_reported_where_it_was_written(section, environ, options, message):
    environ = {f"GUARDRAIL_GATEWAY__{name}": value for name, value in environ.items()}
    with pytest.raises(ConfigError, match=message) as raised:
        GatewaySettings.from_env(section=section, environ=environ, options=options)
    assert "s3cret" not in str(raised.value)


def test_a_misspelled_section_names_the_right_one(tmp_path):
    path = tmp_path / "guardrail.toml"
    path.write_text("[gatway]\nport = 1\n")
    with pytest.raises(ConfigError, match="did you mean 'gateway'"):
        GuardrailConfig.from_toml(path, environ={})
    path.write_text("gateway = 1\n")
    with pytest.raises(ConfigError, match=r"must be a section, \[gateway\]"):
        gateway_section(path)


def test_settings_are_read_without_the_extra_of_the_server():
    code = "import sys, chains.gateway.settings; print({'starlette', 'uvicorn'} & {*sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"
