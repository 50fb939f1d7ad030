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
    "zeros": "0" * 400,
    "zeros beyond what an integer may be read from": "0" * 5_000,
    "thousands of zeros": "0" + ",000" * 150,
    "zeros and a decimal": "0" * 400 + ".5",
    "zeros behind a point": "0." + "0" * 400,
    "zeros and a scale": "0" * 400 + " million",
    "zeros and a figure": "0" * 400 + "7",
    "figures and signs": "12,0.00-" * 60 + "0" * 400,
    "groups of zeros": " ".join(["1", *["000"] * 130]),
    "other figures": "\u0660" * 400,
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
    "It was {} \N{DEGREE SIGN}C.",
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


def test_a_zero_is_as_fine_as_its_last_figure() -> None:
    """However many zeros write it: a wide step would let any other number pass for it."""
    for written in ("0", "000", "0,000,000", "0" * 400):
        quantity = find_values(f"It was {written} \N{DEGREE SIGN}C.")[0].value
        assert (quantity.low, quantity.step) == (0.0, 1.0), written
