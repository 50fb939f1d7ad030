"""What stands beside a name is told of it: *Anna, a painter*, *married Otto, born in Ulm*."""

import pytest

from guardrail.types import SpanKind, Triple
from tests.guardrail.test_attribution import Credulous, attribute
from tests.guardrail.test_stated import Denying, told

ANNA, OTTO = "Anna Keller", "Otto Braun"


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("married Otto Braun, a painter born in Ulm.", ("place of birth", "Ulm")),
        ("married Otto Braun, born in Ulm.", ("place of birth", "Ulm")),
        ("worked with Otto Braun, a sculptor born in Ulm.", ("place of birth", "Ulm")),
        ("married Otto Braun, a painter born in 1870.", ("date of birth", "1870-03-02")),
        ("married Otto Braun, who was born in Ulm.", ("place of birth", "Ulm")),
    ],
)
def test_what_is_said_beside_another_name_contradicts_nothing_of_the_subject(
    text: str, fact: tuple[str, str]
) -> None:
    triples = tuple(
        Triple(subject=s, property=p, value=v)
        for s, p, v in (
            (ANNA, "place of birth", "Rome"),
            (ANNA, "date of birth", "1880-01-05"),
            (ANNA, "spouse", OTTO),
            (OTTO, *fact),
        )
    )
    for judge in (None, Credulous(), Denying()):
        (one,) = attribute(f"Anna Keller {text}", triples, judge).sentences
        assert not any(span.kind is SpanKind.CONTRADICTED for span in one.spans)
        if not isinstance(judge, Denying):
            assert triples[-1].citation in one.citations


def test_a_birthplace_beside_the_name_of_a_place_is_the_subjects_own() -> None:
    fact = (ANNA, "place of birth", "Rome")
    assert told("Anna Keller grew up in Rome, her birthplace.", fact) == {fact}
    assert told("Anna Keller, born in Rome, died in Ulm.", fact) == {fact}


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Anna Keller, a painter, was born in Rome.", True),
        ("Anna Keller (painter) was born in Rome.", True),
        ("Retired Swiss painter Anna Keller, also known as Nan, was born in Rome.", True),
        ("Anna Keller, a painter, died in Bonn.", True),
        ("Anna Keller, a painter, married Otto Braun.", True),
        ("Anna Keller married Otto Braun, a painter.", False),
        ("Anna Keller is a painter's wife.", False),
        ("Anna Keller was a painter's daughter and a dancer.", False),
        ("Anna Keller is a painter.", True),
    ],
)
def test_what_somebody_is_stands_beside_their_own_name(text: str, stated: bool) -> None:
    fact = (ANNA, "occupation", "painter")
    assert (fact in told(text, fact)) is stated
