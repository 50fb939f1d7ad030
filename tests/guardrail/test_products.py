"""Facts of a hotel and a product, as shops hold them: what a chatbot may say of them."""

import pytest

from guardrail import Guardrail
from guardrail.types import Category, Triple

HOTEL = tuple(
    Triple(subject="Hotel Miramar", property=label, value=value)
    for label, value in (
        ("city", "Lisbon"),
        ("category", "hotel"),
        ("star rating", "4"),
        ("number of rooms", "84"),
        ("price per night", "120 EUR"),
        ("swimming pool", "true"),
        ("pets allowed", "false"),
        ("parking", "false"),
    )
)
LAMP = tuple(
    Triple(subject="Alba", property=label, value=value)
    for label, value in (
        ("material", "steel"),
        ("gluten free", "yes"),
        ("contains nuts", "yes"),
        ("weight", "2 kg"),
        ("warranty", "2 years"),
        ("cost", "$20 million"),
        ("rating", "4 out of 5"),
        ("in stock", "true"),
        ("architect", "Jane Doe"),
        ("color", "black"),
        ("near", "Café Rouge"),
    )
)


def categories(guard: Guardrail, text: str) -> set[Category | None]:
    evidence = HOTEL if "Miramar" in text or text.startswith(("-", "|")) else LAMP
    question = f"Tell me about {evidence[0].subject}."
    answer = guard.check(question=question, answer=text, evidence=evidence)
    return {one.category for one in answer.sentences}


@pytest.mark.parametrize(
    "text",
    [
        "Hotel Miramar is not in Lisbon.",
        "Hotel Miramar isn't located in Lisbon.",
        "Hotel Miramar does not have 84 rooms.",
        "Hotel Miramar is a hotel without a pool.",
        "There is no pool at Hotel Miramar.",
        "Hotel Miramar has 4 rooms.",
        "Hotel Miramar has 84 floors.",
        "Hotel Miramar is 84m tall.",
        "Hotel Miramar costs 84 euros per night.",
        "Hotel Miramar is a five-star hotel in Lisbon.",
        "| Parking | Yes |",
        "- Swimming pool: no",
        "Alba is not made of steel.",
        "Alba does not weigh 2 kg.",
        "Alba was not designed by Jane Doe.",
        "Alba is not near Café Rouge.",
        "Alba is out of stock.",
        "Alba contains gluten.",
        "Alba is not gluten-free.",
        "Alba is free of nuts.",
        "Alba is a nut-free cake.",
        "Alba cost $20 billion.",
        "Alba has a 2-month warranty.",
        "Alba is not rated 4 out of 5.",
        "Alba comes in black but not in steel.",
    ],
)
def test_what_denies_or_misreads_a_fact_is_not_supported(guard: Guardrail, text: str) -> None:
    assert categories(guard, text) != {Category.SUPPORTIVE}


@pytest.mark.parametrize(
    "text",
    [
        "Hotel Miramar is in Lisbon.",
        "Hotel Miramar has 84 rooms.",
        "Hotel Miramar, which has 84 rooms, is in Lisbon.",
        "The hotel in Lisbon, Hotel Miramar, does not allow pets.",
        "Hotel Miramar has a swimming pool but no parking.",
        "Hotel Miramar is a four-star hotel in Lisbon.",
        "- Parking: no",
        "- Swimming pool: yes",
        "Alba is made of steel.",
        "Alba weighs 2 kg.",
        "Alba was designed by Jane Doe.",
        "Alba is in stock.",
        "Alba is gluten-free.",
        "Alba contains nuts.",
        "Alba cost $20 million.",
        "Alba has a 2-year warranty.",
        "Alba is rated 4 out of 5.",
        "Alba is not only made of steel but also black.",
    ],
)
def test_what_tells_a_fact_is_supported(guard: Guardrail, text: str) -> None:
    assert categories(guard, text) == {Category.SUPPORTIVE}


@pytest.mark.parametrize(
    "text",
    [
        "Hotel Miramar stands by the Parking Museum.",
        "Hotel Miramar has no garden, and its pool is heated.",
        "Nobody at Hotel Miramar doubts that it has a pool.",
    ],
)
def test_words_of_a_property_in_names_and_other_clauses_deny_nothing(
    guard: Guardrail, text: str
) -> None:
    assert Category.CONTRADICTORY not in categories(guard, text)
