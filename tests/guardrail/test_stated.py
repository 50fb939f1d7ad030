"""What a sentence states of whom: values that merely stand in it are not cited."""

from collections.abc import Sequence

import pytest

from guardrail.types import NLIScores, SpanKind, Triple
from judges.base import Pair
from tests.guardrail.test_attribution import ARTEMISIA, ORAZIO, Credulous, attribute


def told(text: str, *facts: tuple[str, str, str]) -> set[tuple[str, str, str]]:
    """Facts cited of the last sentence, whatever a judge would say."""
    triples = tuple(Triple(subject=s, property=p, value=v) for s, p, v in facts)
    last = attribute(text, triples, Credulous()).sentences[-1]
    return {(one.entity, one.property, one.value) for one in last.citations}


@pytest.mark.parametrize(
    ("text", "value", "stated"),
    [
        ("In 1593 she was a student.", "1593-07-08", False),
        ("She was born in 1593.", "1593-07-08", True),
        ("Artemisia Gentileschi (1593 – 1654) was a student.", "1593-07-08", True),
    ],
)
def test_a_date_needs_the_word_of_its_property(text: str, value: str, stated: bool) -> None:
    fact = (ARTEMISIA, "date of birth", value)
    assert (fact in told(f"Artemisia Gentileschi painted. {text}", fact)) is stated


def test_a_day_where_the_year_alone_is_held_is_marked_whatever_the_judge_says() -> None:
    triples = (Triple(subject=ARTEMISIA, property="date of birth", value="1593-01-01"),)
    for text, day in (("July 8, 1593", True), ("January 1, 1593", False), ("1593", False)):
        (one,) = attribute(f"Artemisia Gentileschi was born on {text}.", triples).sentences
        assert one.citations == (triples[0].citation,)
        marked = [span.text for span in one.spans if span.kind is SpanKind.NA]
        assert marked == ([text] if day else [])


@pytest.mark.parametrize(
    "text",
    [
        "She was Prime Minister of Singapore.",
        "She was born in 1950 and became Prime Minister of Singapore.",
        "She joined the Singapore Academy.",
    ],
)
def test_a_place_inside_a_longer_name_is_nobodys_birthplace(text: str) -> None:
    facts = (
        (ARTEMISIA, "place of birth", "Singapore"),
        (ARTEMISIA, "position held", "Prime Minister of Singapore"),
        (ARTEMISIA, "member of", "Singapore Academy"),
    )
    found = told(f"Artemisia Gentileschi painted. {text}", *facts)
    assert facts[0] not in found
    assert found


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Artemisia Gentileschi was king of Egypt.", False),
        ("Artemisia Gentileschi lived in Egypt.", False),
        ("Artemisia Gentileschi joined the Egypt Exploration Society.", False),
        ("Artemisia Gentileschi was a citizen of Egypt.", True),
        ("Artemisia Gentileschi was a painter from Egypt.", True),
    ],
)
def test_a_country_in_a_title_or_as_a_place_is_no_nationality(text: str, stated: bool) -> None:
    fact = (ARTEMISIA, "country of citizenship", "Egypt")
    assert (fact in told(text, fact)) is stated


def test_a_tie_needs_its_own_word_and_its_own_direction() -> None:
    child, pupil = (ORAZIO, "child", ARTEMISIA), (ORAZIO, "student", ARTEMISIA)
    assert told("Artemisia Gentileschi was a daughter of Orazio Gentileschi.", child) == {child}
    assert told("Artemisia Gentileschi was a daughter of Orazio Gentileschi.", pupil) == set()
    assert told("Artemisia Gentileschi was the mother of Orazio Gentileschi.", child) == set()
    assert told("Artemisia Gentileschi married Orazio Gentileschi.", child) == set()


def test_what_is_said_of_the_clauses_subject_is_not_said_of_whom_it_names() -> None:
    facts = (
        (ORAZIO, "place of birth", "Rome"),
        (ORAZIO, "occupation", "painter"),
        (ORAZIO, "child", ARTEMISIA),
    )
    text = "Artemisia Gentileschi was born in Rome and was a daughter of Orazio Gentileschi."
    assert told(text, *facts) == {facts[2]}
    assert facts[1] in told("She was a daughter of Orazio Gentileschi, a painter.", *facts)


def test_half_the_name_of_another_person_names_nobody() -> None:
    fact = (ARTEMISIA, "place of birth", "Rome")
    assert told("Prudenzia Gentileschi was born in Rome.", fact) == set()
    assert told("Gentileschi was born in Rome.", fact) == {fact}


def test_no_part_of_an_institutions_name_stands_for_it() -> None:
    fact = (ARTEMISIA, "educated at", "Stanford University")
    (one,) = attribute(
        "Artemisia Gentileschi was educated at the University of Rome.",
        (Triple(subject=fact[0], property=fact[1], value=fact[2]),),
    ).sentences
    assert one.citations == ()


@pytest.mark.parametrize(
    "broken",
    [
        "She painted [Artemisia Gentileschi, place of birth: Rome, father: Orazio",
        "She painted [Q1, name: Artemisia [Q2, father: Orazio], place of birth: Rome].",
    ],
)
def test_what_a_broken_marker_lists_is_not_stated(broken: str) -> None:
    one = attribute(broken).sentences[-1]
    assert {(citation.property, citation.value) for citation in one.citations} == {
        ("occupation", "painter")
    }
    assert one.na


@pytest.mark.parametrize(
    ("text", "fact", "stated"),
    [
        ("Orazio knew Ottavia, a painter.", ("occupation", "painter"), False),
        ("Orazio was a student of human anatomy.", ("instance of", "human"), False),
        ("Orazio was a member of the Senate.", ("position held", "Senate"), False),
        ("Orazio held the office of governor.", ("position held", "governor"), True),
        ("Orazio was from the Medici Party.", ("party", "Medici Party"), True),
        ("Orazio died in the year of the death of Tassi.", ("killed by", "Tassi"), False),
        ("Orazio was murdered by Tassi.", ("killed by", "Tassi"), True),
    ],
)
def test_what_only_stands_beside_or_specifies_another_noun_is_not_stated(
    text: str, fact: tuple[str, str], stated: bool
) -> None:
    whole = (ORAZIO, *fact)
    assert (whole in told(text.replace("Orazio", ORAZIO, 1), whole)) is stated


def test_a_second_clause_is_about_its_own_subject_wherever_the_parser_puts_it() -> None:
    painter = (ORAZIO, "occupation", "painter")
    text = "Artemisia Gentileschi was from Rome and Orazio Gentileschi was a painter from Rome."
    assert told(text, painter) == {painter}
    death = (ORAZIO, "date of death", "1639")
    text = "Orazio Gentileschi died in {} and Artemisia Gentileschi died in {}."
    assert told(text.format(1639, 1654), death) == {death}
    assert told(text.format(1654, 1639), death) == set()
    pope = (ORAZIO, "position held", "Pope")
    assert told("Orazio Gentileschi was the last of the Popes.", pope) == {pope}


@pytest.mark.parametrize(
    ("text", "fact", "stated"),
    [
        ("Orazio was not born in Pisa.", ("place of birth", "Pisa"), False),
        ("Orazio never married Ottavia.", ("spouse", "Ottavia"), False),
        ("Orazio did not know his father, Ottavio.", ("father", "Ottavio"), True),
        ("Orazio wasn't a painter.", ("occupation", "painter"), False),
        ("Orazio was not just a painter.", ("occupation", "painter"), True),
        ("Orazio did not die until 1639.", ("date of death", "1639-02-07"), True),
        ("Orazio was born in Pisa, not in Rome.", ("place of birth", "Pisa"), True),
        ("Orazio was born in Pisa and did not die in Rome.", ("place of birth", "Pisa"), True),
        ("Orazio is not family friendly.", ("family friendly", "no"), True),
        ("Orazio is a not friendly pub.", ("eat type", "pub"), True),
    ],
)
def test_what_is_denied_is_not_stated(text: str, fact: tuple[str, str], stated: bool) -> None:
    whole = (ORAZIO, *fact)
    assert (whole in told(text.replace("Orazio", ORAZIO, 1), whole)) is stated


def test_a_tie_denied_of_its_subject_is_not_stated_of_its_value() -> None:
    facts = ((ORAZIO, "child", ARTEMISIA), (ARTEMISIA, "place of birth", "Rome"))
    text = "Artemisia Gentileschi painted. She {} the daughter of Orazio Gentileschi."
    assert told(text.format("was"), *facts) == {facts[0]}
    assert told(text.format("was not"), *facts) == set()


@pytest.mark.parametrize(("verb", "stated"), [("married", True), ("never married", False)])
def test_a_tie_denied_is_stated_of_neither_end(verb: str, stated: bool) -> None:
    facts = ((ORAZIO, "spouse", ARTEMISIA), (ARTEMISIA, "spouse", ORAZIO))
    found = told(f"Artemisia Gentileschi {verb} Orazio Gentileschi.", *facts)
    assert found == (set(facts) if stated else set())


class Denying(Credulous):
    """A back end that is sure of a contradiction everywhere."""

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        return [NLIScores(entailment=0.0, neutral=0.0, contradiction=1.0) for _ in pairs]


@pytest.mark.parametrize(
    ("text", "fact", "contradicted"),
    [
        ("Bob Marley died in Miami.", ("place of death", "Kingston"), True),
        ("Bob Marley died in Miami.", ("place of death", "Jackson Memorial Hospital"), False),
        ("Bob Marley died in Chester Square.", ("place of death", "London"), False),
        ("Bob Marley was the son of Lee Perry.", ("father", "Norval Marley"), True),
        ("Lee Perry met his sons Ky-Mani and Bob Marley.", ("father", "Norval Marley"), False),
    ],
)
def test_what_may_hold_beside_a_fact_does_not_contradict_it(
    text: str, fact: tuple[str, str], contradicted: bool
) -> None:
    triple = Triple(subject="Bob Marley", property=fact[0], value=fact[1])
    (one,) = attribute(text, (triple,), Denying()).sentences
    assert any(span.kind is SpanKind.CONTRADICTED for span in one.spans) is contradicted


def test_an_answer_about_a_value_of_the_evidence_is_not_about_its_subject() -> None:
    triples = (
        Triple(subject="Johann Christian Bach", property="father", value="Johann Sebastian Bach"),
        Triple(subject="Johann Christian Bach", property="place of death", value="London"),
    )
    text = "Johann Sebastian Bach was a composer. He died in Leipzig."
    told = attribute(text, triples, Denying()).sentences
    assert not any(s.kind is SpanKind.CONTRADICTED for one in told for s in one.spans)


@pytest.mark.parametrize(
    "text",
    [
        "She was born before 1593.",
        "She was born after July 8, 1593.",
        "She gave birth to Prudentia in 1593.",
    ],
)
def test_a_bound_or_another_birth_states_no_date(text: str) -> None:
    fact = (ARTEMISIA, "date of birth", "1593-07-08")
    assert told(f"Artemisia Gentileschi painted. {text}", fact) == set()


@pytest.mark.parametrize(
    ("text", "fact", "stated"),
    [
        ("Born in Bern, Orazio was a student in 1639.", ("date of birth", "1639-02-07"), False),
        ("Orazio, born in Bern, was a student in 1639.", ("date of birth", "1639-02-07"), False),
        ("Orazio, born in Bern in 1639, was a student.", ("date of birth", "1639-02-07"), True),
        ("Orazio's birth was in 1639.", ("date of birth", "1639-02-07"), True),
        ("Orazio was born and raised in Bern.", ("place of birth", "Bern"), True),
        ("In Bern, Orazio painted until his death.", ("place of death", "Bern"), False),
        ("Orazio stayed in Bern until his death.", ("place of death", "Bern"), False),
        ("In Bern, Orazio died.", ("place of death", "Bern"), True),
        ("Bern is the town in which Orazio died.", ("place of death", "Bern"), True),
        ("Orazio lived there until his death in 1639.", ("date of death", "1639-02-07"), True),
        ("Orazio was born, according to him, in 1639.", ("date of birth", "1639-02-07"), True),
    ],
)
def test_a_verb_of_something_else_parts_a_value_from_birth_and_death(
    text: str, fact: tuple[str, str], stated: bool
) -> None:
    whole = (ORAZIO, *fact)
    assert (whole in told(text.replace("Orazio", ORAZIO, 1), whole)) is stated


def test_what_is_said_beside_the_subject_is_not_said_of_whom_it_names() -> None:
    facts = ((ARTEMISIA, "occupation", "writer"), (ORAZIO, "occupation", "writer"))
    text = "Artemisia Gentileschi, the daughter of the painter Orazio Gentileschi, was a writer."
    assert told(text, *facts) == {facts[0]}


@pytest.mark.parametrize(
    "text",
    [
        "Artemisia was the wife of the merchant Pierantonio Gentileschi and a daughter of Orazio.",
        "Artemisia was a daughter of Orazio and the wife of the merchant Pierantonio Gentileschi.",
    ],
)
def test_a_relation_in_apposition_keeps_its_tie_without_a_middle_name(text: str) -> None:
    facts = (
        (ARTEMISIA, "spouse", "Pierantonio Vincenzo Gentileschi"),
        (ARTEMISIA, "father", ORAZIO),
    )
    triples = tuple(Triple(subject=s, property=p, value=v) for s, p, v in facts)
    (one,) = attribute(text, triples, Credulous()).sentences
    supported = {span.text for span in one.spans if span.kind is SpanKind.SUPPORTED}
    assert supported == {"Pierantonio Gentileschi", "Orazio"}


def test_a_fuller_name_than_the_label_names_its_person() -> None:
    facts = (
        ("Mary Shelley", "place of birth", "Somers Town"),
        ("Mary Shelley", "depicted by", "Mary Wollstonecraft Shelley"),
        ("Mary Shelley", "mother", "Mary Wollstonecraft"),
    )
    text = "Mary Wollstonecraft Shelley was a novelist born in Somers Town, London."
    assert told(text, *facts) == {facts[0]}


def test_another_monarch_of_the_name_is_no_successor() -> None:
    facts = (("Bahram II", "succeeded by", "Bahram III"), ("Bahram II", "succeeds", "Bahram I"))
    assert told("Bahram II was succeeded by Bahram III.", *facts) == {facts[0]}
    assert told("Bahram II was succeeded by Bahram I.", *facts) == set()
    assert told("Bahram II succeeded Bahram I.", *facts) == {facts[1]}
    assert told("Bahram III succeeded Bahram II.", *facts) == {facts[0]}
    assert told("Bahram II succeeded Bahram III.", *facts) == set()


@pytest.mark.parametrize(
    "text",
    [
        "After the death of her husband in London in 1639, Artemisia Gentileschi wrote it.",
        "Artemisia Gentileschi lost her husband, who died in London in 1639.",
        "Her husband's death in London in 1639 made Artemisia Gentileschi a widow.",
        "In 1639 her husband drowned in London.",
        "Artemisia Gentileschi was 46 when her husband, Tassi, died in London in 1639.",
    ],
)
def test_another_persons_death_neither_tells_nor_contradicts_hers(text: str) -> None:
    for place, date in (("London", "1639-02-07"), ("Naples", "1654-01-01")):
        triples = (
            Triple(subject=ARTEMISIA, property="place of death", value=place),
            Triple(subject=ARTEMISIA, property="date of death", value=date),
            Triple(subject=ARTEMISIA, property="cause of death", value="bubonic plague"),
            Triple(subject=ARTEMISIA, property="residence", value=place),
        )
        for judge in (Credulous(), Denying()):
            (one,) = attribute(text, triples, judge).sentences
            assert one.citations == ()
            assert not any(span.kind is SpanKind.CONTRADICTED for span in one.spans)


def test_a_tie_is_told_by_no_noun_that_joins_two_others() -> None:
    facts = (
        (ARTEMISIA, "father", ORAZIO),
        (ARTEMISIA, "mother", "Prudenzia Montoni"),
        (ORAZIO, "spouse", "Prudenzia Montoni"),
    )
    text = "She was the wife of the merchant Tassi and the daughter of {} and Prudenzia Montoni."
    assert told(text.format(ORAZIO), *facts) == set(facts[:2])


@pytest.mark.parametrize(
    ("text", "fact", "stated"),
    [
        ("Orazio ruled Egypt.", ("country of citizenship", "Egypt"), False),
        ("Orazio led a party in China.", ("ethnic group", "Chinese people"), False),
        ("Orazio was of Chinese descent.", ("ethnic group", "Chinese people"), True),
        ("Orazio was in Pisa and the father of Tassi.", ("relative", "Tassi"), False),
        ("Orazio was a cousin of Tassi.", ("relative", "Tassi"), True),
        ("Orazio met a French king.", ("country of citizenship", "France"), False),
        ("Orazio worked as a French teacher.", ("country of citizenship", "France"), True),
        ("Orazio studied at the University of Pisa.", ("work location", "Pisa"), False),
        ("Orazio worked in Pisa.", ("work location", "Pisa"), True),
        ("Orazio was of the family of Tassi.", ("family", "Lomi family"), False),
        ("Orazio was of the Lomi family.", ("family", "Lomi family"), True),
        ("Orazio was a student in 1563 and Tassi's birthplace was Pisa.",
         ("date of birth", "1563-07-09"), False),
        ("Orazio was a student in Pisa and Tassi's birthplace was Rome.",
         ("place of birth", "Pisa"), False),
        ("Orazio was born in Pisa, Italy, to Giulia Lomi.", ("mother", "Giulia Lomi"), True),
        ("Orazio was born in Pisa and moved to Giulia Lomi.", ("mother", "Giulia Lomi"), False),
        ("Orazio was a student of his mother, Giulia Lomi.", ("mother", "Giulia Lomi"), True),
        ("Orazio was the son of Tassi and his wife Giulia Lomi.", ("mother", "Giulia Lomi"), True),
        ("His mother was Anna, the wife of Giulia Lomi.", ("mother", "Giulia Lomi"), False),
        ("Orazio was the son and pupil of Giulia Lomi.", ("mother", "Giulia Lomi"), True),
    ],
)  # fmt: skip
def test_a_word_for_the_property_governs_what_is_cited_for_it(
    text: str, fact: tuple[str, str], stated: bool
) -> None:
    whole = (ORAZIO, *fact)
    text = f"Orazio painted. {text}".replace("Orazio", ORAZIO)
    assert (whole in told(text, whole)) is stated
