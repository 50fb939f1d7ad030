"""A small version of ``benchmarks.invariants``, on evidence that Hypothesis invents."""

import json
from datetime import date

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from guardrail import Guardrail, GuardrailConfig, Passage, Triple
from guardrail.cli import app
from guardrail.core.types.answers import CheckRequest
from guardrail.evaluation.invariants import GUARANTEES, Tally, Trial, measured, trials_of

NAMES = st.sampled_from(["Fjell 3", "Tarn City", "Oddo Loft", "Marl Lane"])
FACTS = st.dictionaries(
    NAMES,
    st.fixed_dictionaries(
        {
            "price_eur": st.integers(1_000, 9_999).map(str),
            "launch": st.dates(date(2010, 2, 1), date(2010, 12, 31)).map(str),
            "waterproof": st.sampled_from(["yes", "no"]),
        }
    ),
    min_size=2,
)
SENTENCES = st.lists(
    st.tuples(NAMES, st.sampled_from(["is sold in spring", "has a warranty of 5 years"])).map(
        lambda pair: f"The {pair[0]} {pair[1]}."
    ),
    min_size=1,
    max_size=3,
    unique=True,
)


@settings(
    max_examples=6, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(FACTS, SENTENCES, st.integers(0, 99))
def test_the_guarantees_hold_without_a_judge(facts, sentences, seed):
    evidence = (
        *(Triple(name, key, value) for name, row in facts.items() for key, value in row.items()),
        Passage(" ".join(sentences), title="Catalogue"),
    )
    request = CheckRequest(question="", answer=" ".join(sentences), evidence=evidence)
    with Guardrail(GuardrailConfig(judge="none", graph={"location": "none"})) as guard:
        found = measured(guard, list(trials_of([request], seed=seed)))
    assert {kind: tally.violations for kind, tally in found.items()} == dict.fromkeys(found, 0)
    assert {"shuffle", "copied", "notation"} <= found.keys() <= GUARANTEES.keys()


def test_a_violation_is_counted():
    evidence = (Passage("It rains."),)
    copied = CheckRequest(question="", answer="It rains.", evidence=evidence)
    invented = CheckRequest(question="", answer="It snows.", evidence=evidence)
    with Guardrail(GuardrailConfig(judge="none", graph={"location": "none"})) as guard:
        found = measured(guard, [Trial("copied", copied), Trial("copied", invented)])
    assert found == {"copied": Tally(trials=2, violations=1)}


def test_the_command_tests_a_file_of_your_own(tmp_path):
    path = tmp_path / "answers.jsonl"
    row = {"answer": "It rains in May.", "evidence": ["It rains in May. The sun shines in June."]}
    path.write_text(json.dumps(row) + "\n")
    run = CliRunner().invoke(app, ["eval", "--invariants", str(path), "--judge", "none"])
    assert run.exit_code == 0
    assert "guarantee 2, copied: 0 of 2 violated" in run.output
