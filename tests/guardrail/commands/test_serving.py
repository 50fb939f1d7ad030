"""What ``guardrail serve`` makes of options and settings."""

import pytest
from typer.testing import CliRunner

from guardrail.cli import app
from guardrail.commands.options import build_config
from guardrail.commands.serving import strict_unless_named
from guardrail.core.errors import KnowledgeGraphError


@pytest.fixture(autouse=True)
def no_policy_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GUARDRAIL_POLICY", raising=False)


SETTINGS = '[policy]\nbase = "strict"\nname = "ours"\ndeadline_s = 5.0\n'


@pytest.mark.parametrize(
    ("written", "options", "policy"),
    [
        ("", {}, ("strict", 60.0, True)),
        (SETTINGS, {}, ("ours", 5.0, True)),
        (SETTINGS, {"policy": "annotate"}, ("annotate", 60.0, False)),
    ],
)
def test_the_gateway_is_strict_unless_a_policy_is_named(written, options, policy, tmp_path):
    (tmp_path / "guardrail.toml").write_text(written)
    found = strict_unless_named(build_config(tmp_path / "guardrail.toml", **options)).policy
    assert (found.name, found.deadline_s, found.needs_support) == policy


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_mistake_keeps_the_gateway_from_serving(workers: str) -> None:
    done = CliRunner().invoke(app, ["serve", "--kg", "/no/graph", "--workers", workers])
    assert isinstance(done.exception, KnowledgeGraphError)


def test_an_upstream_that_is_no_address_is_named() -> None:
    done = CliRunner().invoke(app, ["serve", "--upstream", "notaurl"])
    assert str(done.exception) == "--upstream: 'notaurl' is not an http or https address"
