"""Names of evidence have a bound each, its texts one for all of them together."""

import pytest

from guardrail import Guardrail, GuardrailConfig, Passage, Triple
from guardrail.core.errors import InputError
from guardrail.core.text.names import label_in, part_of_name_in
from guardrail.core.text.values import find_values
from guardrail.core.text.words import tokenise
from guardrail.core.types import TableRow
from guardrail.evidence.retrieval import MOST_CHARS
from tests.growth import is_linear
from tests.guardrail.scripted import Overlap

TRUE = "The Fjell 3 costs 40 euros."
LONG = "x" * (MOST_CHARS + 1)
FACT = {"subject": "Fjell 3", "property": "price", "value": "40 euros"}


@pytest.fixture(scope="module")
def guard():
    with Guardrail(GuardrailConfig(graph={"location": "none"}), grounding=Overlap()) as guard:
        yield guard


@pytest.mark.parametrize(
    ("name", "item"),
    [
        *((name, Passage(text=TRUE, **{name: LONG})) for name in ("id", "title", "url")),
        *(
            (name, Triple(**{**FACT, name: LONG}))
            for name in ("subject", "property", "subject_id", "property_id", "value_id")
        ),
        ("row.table", Triple(**FACT, row=TableRow(table=LONG, number=1))),
    ],
)
def test_a_name_that_is_too_long_is_told(guard, name, item) -> None:
    with pytest.raises(InputError, match=rf"evidence\[1\].{name} has 2,001 characters.* 2,000"):
        guard.check("Price?", TRUE, evidence=[Passage(TRUE), item])
    with pytest.raises(InputError, match=name):
        guard.session("Price?", evidence=[Passage(TRUE), item])


def test_what_a_retriever_names_has_the_same_bound() -> None:
    def found(question: str) -> list[Passage]:
        return [Passage(text=TRUE, title=LONG)]

    config = GuardrailConfig(graph={"location": "none"})
    with (
        Guardrail(config, grounding=Overlap(), retriever=found) as guard,
        pytest.raises(InputError, match=r"evidence\[0\].title"),
    ):
        guard.check("Price?", TRUE)


def test_texts_and_values_of_any_length_and_names_at_the_bound_are_judged(guard) -> None:
    evidence = [
        Passage(text=f"{TRUE} {'It is green. ' * 2_000}", title="x" * MOST_CHARS),
        Triple("Fjell 3", "notes", "green " * 2_000),
    ]
    answer = guard.check("Price?", TRUE, evidence=evidence)
    assert answer.sentences[0].category == "supportive"


def test_of_much_text_the_longest_passages_are_cut_behind_a_sentence() -> None:
    config = GuardrailConfig(graph={"location": "none"}, limits={"evidence_chars": 120})
    long = "The Fjell 3 costs 40 euros. The Fjell 3 is sold with a lamp, which is no lie. " * 9
    evidence = [Passage(long, id="a"), Triple(**FACT), Passage(TRUE), Triple("It", "is", LONG)]
    with Guardrail(config, grounding=Overlap()) as guard:
        answer = guard.check("Price?", TRUE, evidence=evidence)
        session = guard.session("Price?", evidence=evidence)
        session.add(TRUE)
        grown = session.finish()
    assert answer.evidence == (Passage(TRUE, id="a"), *evidence[1:3])
    assert answer.evidence == grown.evidence
    [told] = [problem.message for problem in answer.errors if problem.part == "evidence"]
    assert told.startswith("2 triples and passages were left out or cut; raise limits.evidence")
    assert answer.sentences[0].category == "supportive"


def test_a_retrievers_evidence_and_that_of_a_megabyte_have_a_bound() -> None:
    config = GuardrailConfig(graph={"location": "none"}, judge="none")
    with Guardrail(config, retriever=lambda question: [TRUE, "It is green. " * 200_000]) as guard:
        found = guard.retrieve("Price?")
    assert found.left_out == 1
    assert 450_000 < sum(len(item.text) for item in found.evidence) <= 500_000


@pytest.mark.parametrize("unit", ["[1](<", "x ", "(  ", "1 ", "1-1 ", "May 1 ", " ", "18:30 "])
def test_time_is_linear_in_a_label(unit) -> None:
    """Ten times as long takes some ten times as long; it took a hundred times."""
    tokens = tokenise(TRUE)

    def read(label: str) -> None:
        label_in(TRUE, tokens, label)
        part_of_name_in(tokens, label)
        find_values(label)

    assert is_linear(read, lambda size: (unit * size)[:size] + "q", 3_000)
