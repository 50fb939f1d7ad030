"""Heads of tables: those that name their columns are free, those that assert are judged."""

import pytest

from guardrail import STRICT, Guardrail, GuardrailConfig, Passage
from guardrail.evidence.prepared import prepare
from guardrail.markers.grammar import ParsedText
from guardrail.verdict.claims import GroundingRequest, claims_of

LIE = "The Fjell 3 has a range of 777 km and costs 1 euro"
EVIDENCE = [Passage("The Fjell 3 costs 2,490 euros. The Fjell 3 has a range of 110 km.")]
USUAL = (
    "| Plan | Price |",
    "| Plan | Price per month | Users |",
    "| Name | Opening hours | Phone |",
    "| Model | Range (km) | Price (EUR) |",
    "| Plan | 2023 | 2024 |",
    "Feature | Basic | Premium",
    "| | Fjell 3 | Tarn City |",
    "| **Name** | **Born** | **Died** |",
    "| Day | Opens | Closes |",
    "| Price per person per night | Number of rooms with balcony |",
    "| Place | Year in which it opened | Is it free of charge? |",
    "| Employee | Department | Start date |",
    "| Parcel | Up to 5 kg | 5-10 kg |",
)
ASSERTING = (
    f"| {LIE} |\n|---|",
    f"| {LIE} |\n|---|\n| Fjell 3 |",
    "| The Fjell 3 has a range of 777 km | Price |\n|---|---|\n",
    "The Fjell 3 has a range of 777 km | it costs 1 euro\n--|--\nFjell 3 | 2,490 euros",
    "| Fjell 3 range: 777 km | Price: 1 euro |\n|---|---|\n| Fjell 3 | 2,490 euros |",
    "| Model | The Fjell 3 was designed by Elvis Presley |\n|---|---|\n| Fjell 3 | 110 km |",
    "| Fjell 3 range 777 km |\n|---|\n\nThe Fjell 3 costs 2,490 euros.",
)


@pytest.fixture(scope="module")
def guard():
    with Guardrail(GuardrailConfig(graph={"location": "none"})) as guard:
        yield guard


@pytest.mark.parametrize("answer", ASSERTING)
def test_a_head_that_asserts_is_judged(guard, answer) -> None:
    checked = guard.check("What does the Fjell 3 cost?", answer, evidence=EVIDENCE, policy=STRICT)
    head = answer.partition("\n")[0].strip("| ")
    assert head not in checked.text or checked.sentences[0].na


@pytest.mark.parametrize("head", USUAL)
def test_a_head_that_names_its_columns_is_free(guard, head) -> None:
    answer = f"{head}\n|---|---|---|\n| Fjell 3 | 110 km | |\n"
    checked = guard.check("What does the Fjell 3 cost?", answer, evidence=EVIDENCE, policy=STRICT)
    assert checked.sentences[0].category is None
    assert head in checked.text


@pytest.mark.parametrize("head", [head for head in USUAL if not any(map(str.isdigit, head))][:3])
def test_bare_names_of_columns_are_free_without_rows(head) -> None:
    for text in (f"{head}\n|---|---|", f"{head}\n|---|---|\n\n"):
        [claim] = claims_of(GroundingRequest("", ParsedText(clean=text, marked=text), prepare([])))
        assert not claim.prose
