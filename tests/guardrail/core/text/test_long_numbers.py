"""Figures without end are text: nothing that reads them may raise, in answer or evidence."""

import pytest

from guardrail import Guardrail, GuardrailConfig, Passage, Triple
from guardrail.core.text.values import find_values
from tests.guardrail.scripted import Overlap

NUMBERS = {
    "digits": "9" * 400,
    "beyond what an integer may be read from": "9" * 5_000,
    "thousands": ",".join(["999"] * 150),
    "decimals": "0." + "1" * 400,
    "a fraction behind": "9" * 400 + ".5",
    "negative": "-" + "9" * 400,
    "an exponent": "1e400",
    "words": "nine " + "million " * 60,
    "a scale": "9" * 400 + " million",
    "largest float and a scale": "9" * 300 + " billion euros",
}
FORMS = (
    "The depot holds {} seeds.",
    "The depot costs {} euros.",
    "It lasts {} hours per day.",
    "Between 5 and {} percent came.",
    "It opened on {}-01-01.",
    "It opened in {}.",
    "At {}:30 it closes.",
    "${}m",
    "version {}.1.2",
)


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_long_numbers_are_read_as_text(number: str) -> None:
    for form in FORMS:
        find_values(form.format(number))


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_long_numbers_are_judged(number: str) -> None:
    triples = [Triple("Depot", "seeds held", number), Triple("Depot", "opened", f"{number}-01-01")]
    with Guardrail(GuardrailConfig(graph={"location": "none"}), grounding=Overlap()) as guard:
        for form in FORMS:
            told = form.format(number)
            for evidence in (triples, [Passage(told)], [Passage("The depot holds 12 seeds.")]):
                answer = guard.check(
                    "How many?", f"{told} The depot holds 12 seeds.", evidence=evidence
                )
                assert answer.sentences
                assert {error.part for error in answer.errors} <= {"language"}
