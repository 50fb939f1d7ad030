"""What ``guardrail serve`` makes of options and settings."""

from pathlib import Path

import pytest

from guardrail.commands.serving import gateway_config


@pytest.fixture(autouse=True)
def no_policy_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GUARDRAIL_POLICY", raising=False)


def settings(folder: Path) -> Path:
    path = folder / "guardrail.toml"
    path.write_text('[policy]\nbase = "strict"\nname = "ours"\ndeadline_s = 5.0\n')
    return path


def test_the_gateway_is_strict_unless_told() -> None:
    assert gateway_config(None, kg=None, judge=None, policy=None).policy.name == "strict"


def test_the_settings_policy_holds(tmp_path: Path) -> None:
    policy = gateway_config(settings(tmp_path), kg=None, judge=None, policy=None).policy
    assert (policy.name, policy.deadline_s, policy.needs_support) == ("ours", 5.0, True)


def test_the_environment_s_policy_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARDRAIL_POLICY", "best-of-n")
    assert gateway_config(None, kg=None, judge=None, policy=None).policy.name == "best-of-n"


def test_the_option_wins(tmp_path: Path) -> None:
    found = gateway_config(settings(tmp_path), kg=None, judge=None, policy="annotate")
    assert found.policy.name == "annotate"
