"""What ``guardrail serve`` makes of options and settings."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail.cli import app
from guardrail.commands.options import build_config
from guardrail.commands.serving import strict_unless_named
from guardrail.core.errors import KnowledgeGraphError


@pytest.fixture(autouse=True)
def no_policy_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GUARDRAIL_POLICY", raising=False)


def settings(folder: Path) -> Path:
    path = folder / "guardrail.toml"
    path.write_text('[policy]\nbase = "strict"\nname = "ours"\ndeadline_s = 5.0\n')
    return path


def test_the_gateway_is_strict_by_default() -> None:
    assert strict_unless_named(build_config(None)).policy.name == "strict"


def test_the_settings_policy_holds(tmp_path: Path) -> None:
    policy = strict_unless_named(build_config(settings(tmp_path))).policy
    assert (policy.name, policy.deadline_s, policy.needs_support) == ("ours", 5.0, True)


def test_the_option_wins(tmp_path: Path) -> None:
    found = strict_unless_named(build_config(settings(tmp_path), policy="annotate"))
    assert found.policy.name == "annotate"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_mistake_keeps_the_gateway_from_serving(workers: str) -> None:
    done = CliRunner().invoke(app, ["serve", "--kg", "/no/graph", "--workers", workers])
    assert isinstance(done.exception, KnowledgeGraphError)


def test_an_upstream_that_is_no_address_is_named() -> None:
    done = CliRunner().invoke(app, ["serve", "--upstream", "notaurl"])
    assert str(done.exception) == "--upstream: 'notaurl' is not an http or https address"
