"""How sure the judge must be: by preset or threshold, from every place that may say so."""

import json

import pytest
from typer.testing import CliRunner

from chains.evidence.base import request_field
from guardrail import (
    ANNOTATE,
    STRICT,
    CheckRequest,
    ConfigError,
    Guardrail,
    GuardrailConfig,
    Passage,
    Strictness,
    VerdictThresholds,
)
from guardrail.commands.options import build_config
from guardrail.core.types import Category, Grounding, Verdict
from tests.guardrail.scripted import Scripted

SENTENCE = "The old bridge was opened by a queen."
EVIDENCE = [Passage("The bridge was opened in 1932.")]


def grounding(supported: float, contradicted: float, no_claim: float = 0.0) -> Grounding:
    return Grounding(
        supported=supported,
        contradicted=contradicted,
        unsupported=1.0 - supported - contradicted - no_claim,
        no_claim=no_claim,
    )


@pytest.mark.parametrize(
    ("supported", "contradicted", "lenient", "balanced", "strict"),
    [
        (0.90, 0.05, Verdict.SUPPORTED, Verdict.SUPPORTED, Verdict.SUPPORTED),
        (0.60, 0.10, Verdict.SUPPORTED, Verdict.SUPPORTED, Verdict.UNSUPPORTED),
        (0.20, 0.65, Verdict.UNSUPPORTED, Verdict.CONTRADICTED, Verdict.CONTRADICTED),
        (0.35, 0.20, Verdict.SUPPORTED, Verdict.UNSUPPORTED, Verdict.UNSUPPORTED),
        (0.10, 0.55, Verdict.UNSUPPORTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED),
        (0.10, 0.35, Verdict.UNSUPPORTED, Verdict.UNSUPPORTED, Verdict.UNSUPPORTED),
        (0.10, 0.75, Verdict.CONTRADICTED, Verdict.CONTRADICTED, Verdict.CONTRADICTED),
        # Nothing passes whose contradiction is likelier still.
        (0.40, 0.55, Verdict.UNSUPPORTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED),
    ],
)
def test_each_preset_draws_the_line_elsewhere(supported, contradicted, lenient, balanced, strict):
    scores = grounding(supported, contradicted)
    verdicts = [scores.verdict_at(item.thresholds) for item in Strictness]
    assert verdicts == [lenient, balanced, strict]
    assert scores.verdict_at(Strictness.BALANCED.thresholds) is balanced


def test_support_is_counted_among_claims():
    scores = grounding(0.3, 0.0, no_claim=0.45)
    assert scores.verdict_at(VerdictThresholds(support=0.54)) is Verdict.SUPPORTED
    assert scores.verdict_at(VerdictThresholds(support=0.56)) is Verdict.UNSUPPORTED


@pytest.fixture
def judge() -> Scripted:
    return Scripted({SENTENCE: grounding(0.6, 0.1)})


def category(guard: Guardrail, **options: object) -> Category | None:
    return guard.check("", SENTENCE, evidence=EVIDENCE, **options).sentences[0].category  # type: ignore[arg-type]


def test_the_settings_the_argument_and_a_calls_policy_say_it(judge):
    with Guardrail(GuardrailConfig(strictness="strict"), grounding=judge) as guard:
        assert category(guard) is Category.IRRELEVANT
        assert category(guard, policy="annotate") is Category.IRRELEVANT
        assert category(guard, policy=STRICT.changed(strictness="lenient")) is Category.SUPPORTIVE
        request = CheckRequest(question="", answer=SENTENCE, evidence=tuple(EVIDENCE))
        [answer] = guard.check_batch([request])
        assert answer.versions["strictness"] == "strict"
        session = guard.session("", evidence=EVIDENCE)
        session.add(SENTENCE)
        rest = session.rest()
        assert rest is not None
        assert rest.sentences[0].na
    with Guardrail(grounding=judge, strictness="lenient") as guard:
        assert category(guard) is Category.SUPPORTIVE
    with Guardrail(grounding=judge, strictness=VerdictThresholds(support=0.61)) as guard:
        assert category(guard) is Category.IRRELEVANT


def test_a_settings_file_names_a_preset_or_gives_thresholds(tmp_path):
    path = tmp_path / "guardrail.toml"
    path.write_text('strictness = "lenient"\n')
    assert GuardrailConfig.from_toml(path, environ={}).strictness is Strictness.LENIENT
    path.write_text("[strictness]\nsupport = 0.7\n")
    found = GuardrailConfig.from_toml(path, environ={})
    assert found.strictness == VerdictThresholds(support=0.7, contradiction=0.65, removal=0.75)
    assert GuardrailConfig.model_validate(found.model_dump(mode="json")) == found
    path.write_text('[policy]\nbase = "strict"\nstrictness = "strict"\n')
    assert GuardrailConfig.from_toml(path, environ={}).policy.strictness is Strictness.STRICT


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ('strictness = "strct"', "did you mean 'strict'"),
        ('strictness = "much"', "known: lenient, balanced, strict"),
        ("strictness = 0.7", "or a table of support, contradiction and removal"),
        ("strictness = {suport = 0.7}", "no 'suport'; known: support, contradiction"),
        ("strictness = {support = 70}", "strictness.support: Input should be less"),
    ],
)
def test_an_invalid_strictness_is_a_config_error(tmp_path, written, message):
    path = tmp_path / "guardrail.toml"
    path.write_text(written)
    with pytest.raises(ConfigError, match=message):
        GuardrailConfig.from_toml(path, environ={})


def test_the_option_wins_over_the_settings_and_their_policy(tmp_path):
    path = tmp_path / "guardrail.toml"
    path.write_text('strictness = "strict"\n[policy]\nbase = "strict"\nstrictness = "strict"\n')
    found = build_config(path, strictness="lenient")
    assert (found.strictness, found.policy.strictness) == (Strictness.LENIENT, None)
    assert found.policy.name == "strict"
    # The gateway's own default policy stays where only the strictness is asked for.
    assert "policy" not in build_config(strictness="lenient").model_fields_set


def test_the_command_takes_the_option(tmp_path):
    from guardrail.cli import app

    text = tmp_path / "handbook.txt"
    text.write_text("The bridge was opened in 1932.\n")
    asked = ["check", "When?", "It was opened in 1932.", "--passage", str(text), "--json"]
    options = ["--judge", "none", "--kg", "none", "--strictness", "strict"]
    shown = CliRunner().invoke(app, [*asked, *options])
    assert json.loads(shown.stdout)["versions"]["strictness"] == "strict"
    wrong = CliRunner().invoke(app, [*asked, *options[:-1], "strickt"])
    assert isinstance(wrong.exception, ConfigError)


def test_a_request_says_it_beside_a_policy_or_alone():
    field = request_field({"strictness": "lenient"})
    assert field.changes_policy
    assert field.chosen_policy(STRICT) == STRICT.changed(strictness="lenient")
    both = request_field({"policy": "annotate", "strictness": {"support": 0.9}})
    assert both.chosen_policy(STRICT) == ANNOTATE.changed(strictness={"support": 0.9})
    assert not request_field({"evidence": []}).changes_policy
    with pytest.raises(ConfigError, match="did you mean 'lenient'"):
        request_field({"strictness": "leniant"})
