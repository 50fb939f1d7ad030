from collections.abc import Sequence

import pytest

from guardrail.attribution import AttributionRequest, Attributor
from guardrail.markers.grammar import parse
from guardrail.types import (
    AttributedAnswer,
    Category,
    NLIScores,
    Passage,
    Sentence,
    SpanKind,
    Triple,
)
from judges.base import NLIJudge, Pair

ARTEMISIA, ORAZIO = "Artemisia Gentileschi", "Orazio Gentileschi"
FACTS = (
    (ARTEMISIA, "place of birth", "Rome"),
    (ARTEMISIA, "date of birth", "1593-07-08"),
    (ARTEMISIA, "date of death", "1654-01-01"),
    (ARTEMISIA, "place of death", "Naples"),
    (ARTEMISIA, "country of citizenship", "Italy"),
    (ARTEMISIA, "occupation", "painter"),
    (ARTEMISIA, "sex or gender", "female"),
    (ARTEMISIA, "surname", "Gentileschi"),
    (ARTEMISIA, "father", ORAZIO),
    (ORAZIO, "child", ARTEMISIA),
    (ORAZIO, "sex or gender", "male"),
    (ORAZIO, "place of birth", "Pisa"),
    (ORAZIO, "place of death", "London"),
)
TRIPLES = tuple(Triple(subject=s, property=p, value=v) for s, p, v in FACTS)


class Credulous:
    """A back end that finds everything entailed, so that only the rules can refuse a triple."""

    name = "credulous"

    def warm_up(self) -> None:
        """Nothing to load."""

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        return [NLIScores(entailment=1.0, neutral=0.0, contradiction=0.0) for _ in pairs]


class Contrary(Credulous):
    """A back end that finds a contradiction everywhere, short of the surest."""

    name = "contrary"

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        return [NLIScores(entailment=0.0, neutral=0.1, contradiction=0.9) for _ in pairs]


def attribute(
    answer: str, triples: tuple[Triple, ...] = TRIPLES, judge: NLIJudge | None = None
) -> AttributedAnswer:
    request = AttributionRequest(f"Who was {ARTEMISIA}?", parse(answer, triples), triples)
    (attributed,), problems = Attributor(judge, None).attribute([request])
    assert problems == []
    return attributed


def sentence(answer: str) -> Sentence:
    return attribute(answer).sentences[-1]


def cited(one: Sentence) -> set[tuple[str, str]]:
    return {(citation.property, citation.value) for citation in one.citations}


def phrases(one: Sentence, kind: SpanKind) -> list[str]:
    return [span.text for span in one.spans if span.kind is kind]


def test_every_supported_phrase_is_cited_where_it_stands() -> None:
    answer = attribute("Artemisia Gentileschi was an Italian painter born in Rome on July 8, 1593.")
    (only,) = answer.sentences
    assert only.category is Category.SUPPORTIVE
    assert not only.na
    assert answer.marked == (
        "Artemisia Gentileschi was an Italian [Artemisia Gentileschi, country of citizenship: "
        "Italy] painter [Artemisia Gentileschi, occupation: painter] born in Rome [Artemisia "
        "Gentileschi, place of birth: Rome] on July 8, 1593 [Artemisia Gentileschi, date of "
        "birth: 1593-07-08]."
    )


def test_pronouns_follow_the_person_they_stand_for() -> None:
    answer = attribute(
        "Artemisia was born in Rome. Her father was Orazio. He was born in Pisa. "
        "She died in Naples."
    )
    assert [one.category for one in answer.sentences] == [Category.SUPPORTIVE] * 4
    assert ("father", ORAZIO) in cited(answer.sentences[1])
    assert cited(answer.sentences[2]) == {("place of birth", "Pisa")}
    assert cited(answer.sentences[3]) == {("place of death", "Naples")}


def test_a_pronoun_is_not_supported_by_what_another_did() -> None:
    """London is where Orazio died; she died in Naples."""
    last = attribute("She was born in Rome. She died in London.", judge=Credulous()).sentences[-1]
    assert cited(last) == set()


@pytest.mark.parametrize(
    "text",
    [
        "Her mother was an Italian painter.",
        "Artemisia's husband was born in Rome.",
        "Her teacher Agostino Tassi was born in Rome.",
    ],
)
def test_what_is_said_of_a_relation_is_not_said_of_her(text: str) -> None:
    assert cited(attribute(text, judge=Credulous()).sentences[0]) == set()


def test_what_hangs_on_a_name_is_said_of_it() -> None:
    (father,) = attribute(
        "Her father was Orazio Gentileschi, who was born in Pisa.", judge=Credulous()
    ).sentences
    assert {("father", ORAZIO), ("place of birth", "Pisa")} <= cited(father)
    (moved,) = attribute(
        "Artemisia was born in Rome and moved to Naples, where she died.", judge=Credulous()
    ).sentences
    assert {("place of birth", "Rome"), ("place of death", "Naples")} <= cited(moved)


@pytest.mark.parametrize("text", ["She worked in Rome.", "She lived in Naples with Orazio."])
def test_a_verb_of_another_relation_words_no_birth_or_death(text: str) -> None:
    held = cited(attribute(text, judge=Credulous()).sentences[0])
    assert not held & {("place of birth", "Rome"), ("place of death", "Naples")}


@pytest.mark.parametrize(
    ("text", "against"),
    [
        ("Artemisia Gentileschi died in London.", ["place of death"]),
        ("Artemisia Gentileschi died of cholera.", ["cause of death"]),
        ("Artemisia Gentileschi died with Orazio beside her.", []),
        ("Artemisia Gentileschi died in a London hospital.", []),
        ("Artemisia Gentileschi died in 1660.", ["date of death"]),
        ("Artemisia Gentileschi outlived her father, who died in 1660.", []),
        ("Artemisia Gentileschi was 46 when her father died in 1660.", []),
        ("Unlike Artemisia Gentileschi, Agostino Tassi died in 1660.", []),
    ],
)
def test_a_conflict_is_with_the_fact_that_the_words_tell(text: str, against: list[str]) -> None:
    triples = (
        Triple(subject=ARTEMISIA, property="place of death", value="Naples"),
        Triple(subject=ARTEMISIA, property="cause of death", value="bubonic plague"),
        Triple(subject=ARTEMISIA, property="date of death", value="1654-01-01"),
    )
    (only,) = attribute(text, triples, Contrary()).sentences
    found = [span.triple.property for span in only.spans if span.kind is SpanKind.CONTRADICTED
             and span.triple]  # fmt: skip
    assert found == against


@pytest.mark.parametrize(("held", "cites"), [("travel writer", True), ("vice writer", False)])
def test_a_kind_of_writer_is_a_writer(held: str, cites: bool) -> None:
    triples = (Triple(subject=ARTEMISIA, property="occupation", value=held),)
    (only,) = attribute("Artemisia Gentileschi was a writer.", triples).sentences
    assert bool(only.citations) is cites


def test_a_value_under_another_relation_is_not_cited() -> None:
    assert ("place of birth", "Rome") not in cited(sentence("Artemisia Gentileschi died in Rome."))


def test_a_value_is_cited_only_for_the_subject_of_its_clause() -> None:
    triples = (
        Triple(subject=ORAZIO, property="occupation", value="painter"),
        Triple(subject=ORAZIO, property="place of birth", value="Pisa"),
        Triple(subject=ARTEMISIA, property="occupation", value="musician"),
    )
    wrong, right = (
        attribute(f"{one} was a painter, while {two} was a musician.", triples).sentences[0]
        for one, two in (("Artemisia", "Orazio"), ("Orazio", "Artemisia"))
    )
    assert cited(wrong) == set()
    assert cited(right) == {("occupation", "painter"), ("occupation", "musician")}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("She was born in Rome.", {"place of birth"}),
        ("She lived in Rome.", {"residence"}),
        ("She died in Rome.", {"place of death"}),
        ("She died in Rome, where she had lived.", {"place of death", "residence"}),
    ],
)
def test_a_value_supports_only_the_relations_of_its_verbs(text: str, told: set[str]) -> None:
    for judge in (None, Credulous()):
        for relation in ("place of birth", "place of death", "residence"):
            triples = (Triple(subject=ARTEMISIA, property=relation, value="Rome"),)
            (one,) = attribute(text, triples, judge).sentences
            assert bool(cited(one)) is (relation in told), (text, relation)


def test_a_name_alone_states_no_fact_on_names_or_family() -> None:
    facts = (
        ("given name", "Artemisia"),
        ("surname", "Gentileschi"),
        ("depicted by", ARTEMISIA),
        ("described by source", "Rome"),
        ("spouse", "Pierantonio Stiattesi"),
        ("place of birth", "Rome"),
    )
    triples = tuple(Triple(subject=ARTEMISIA, property=p, value=v) for p, v in facts)
    text = "Artemisia Gentileschi was born in Rome and knew Pierantonio Stiattesi."
    (one,) = attribute(text, triples, Credulous()).sentences
    assert cited(one) == {("place of birth", "Rome")}
    (told,) = attribute("Her surname was Gentileschi.", triples, Credulous()).sentences
    assert ("surname", "Gentileschi") in cited(told)


def test_an_adjective_tells_neither_a_language_nor_within_a_name_a_country() -> None:
    facts = (
        ("country of citizenship", "Italy"),
        ("native language", "Italian"),
        ("languages spoken, written or signed", "Italian"),
    )
    triples = tuple(Triple(subject=ARTEMISIA, property=p, value=v) for p, v in facts)

    def names(text: str) -> set[str]:
        return {name for name, _ in cited(attribute(text, triples, Credulous()).sentences[0])}

    assert names("She was an Italian painter.") == {"country of citizenship"}
    assert names("She joined the Italian Socialist Party.") == set()
    assert names("She spoke Italian.") & {facts[1][0], facts[2][0]}


def test_a_numeral_belongs_to_the_name_it_ends() -> None:
    triples = (Triple(subject="Bahram II", property="father", value="Bahram I"),)
    for answer, right in (
        ("Bahram II was the son of Bahram I.", {("father", "Bahram I")}),
        ("Bahram II was the father of Bahram III.", set()),
    ):
        assert cited(attribute(answer, triples, Credulous()).sentences[0]) == right


def test_a_piece_of_a_longer_name_is_not_the_value_of_another_triple() -> None:
    facts = (("mother", "Prudenzia di Ottaviano Montoni"), ("residence", "Montoni"))
    triples = tuple(Triple(subject=ARTEMISIA, property=p, value=v) for p, v in facts)
    text = "Artemisia's mother was Prudenzia di Ottaviano Montoni."
    (one,) = attribute(text, triples, Credulous()).sentences
    assert cited(one) == {("mother", "Prudenzia di Ottaviano Montoni")}


def test_another_year_for_a_property_that_the_sentence_names_is_contradicted() -> None:
    triples = (Triple(subject="Harbour Bridge", property="opened", value="1932-03-19"),)
    for text in ("The bridge was opened in 1923.", "Harbour Bridge opened on 20 March 1932."):
        (one,) = attribute(text, triples).sentences
        assert one.category is Category.CONTRADICTORY, text
    (right,) = attribute("The bridge was opened in 1932.", triples).sentences
    assert right.category is Category.SUPPORTIVE


def test_what_the_evidence_lacks_is_marked() -> None:
    one = sentence("Artemisia Gentileschi was born in Rome and taught by Agostino Tassi.")
    assert one.category is Category.PARTIALLY_SUPPORTIVE
    assert one.na
    assert phrases(one, SpanKind.NA) == ["Agostino Tassi"]
    assert sentence("She wrote 12 letters to Galileo.").category is Category.IRRELEVANT


@pytest.mark.parametrize(
    "text",
    [
        "Artemisia Gentileschi was born in 1596 in Rome.",
        "Artemisia Gentileschi (8 July 1596 – 1654) was a painter.",
        "She was born on 9 July 1593.",
    ],
)
def test_a_wrong_date_is_contradicted_by_its_triple(text: str) -> None:
    one = sentence(text)
    assert one.category is Category.CONTRADICTORY
    (span,) = [span for span in one.spans if span.kind is SpanKind.CONTRADICTED]
    assert span.triple is not None
    assert span.triple.value == "1593-07-08"
    assert one.note is not None
    assert "1593-07-08" in one.note


def test_a_date_told_more_precisely_than_known_lacks_support() -> None:
    one = sentence("Artemisia Gentileschi died on 14 June 1654.")
    assert phrases(one, SpanKind.NA) == ["14 June 1654"]


@pytest.mark.parametrize(
    "text", ["I do not know when she died.", "Who was her mother?", "I hope this helps!", "Sure!"]
)
def test_what_claims_nothing_has_no_verdict(text: str) -> None:
    one = sentence(text)
    assert one.category is None
    assert not one.na


def test_citations_in_the_text_are_kept_where_right_and_dropped_with_a_reason() -> None:
    one = sentence(
        f"Artemisia was born in Rome [{ARTEMISIA}, place of birth: Rome, movement: cubism]."
    )
    assert cited(one) == {("place of birth", "Rome")}
    assert one.note is not None
    assert "movement: cubism" in one.note


def test_citing_word_for_word_leaves_what_a_reader_finds_in_the_sentence() -> None:
    told = (
        "Artemisia Gentileschi was an Italian painter born in Rome on July 8, 1593 "
        f"[{ARTEMISIA}, country of citizenship: Italy]."
    )
    request = AttributionRequest(f"Who was {ARTEMISIA}?", parse(told, TRIPLES), TRIPLES)
    (free,), _ = Attributor(None, None).attribute([request])
    (literal,), _ = Attributor(None, None, verbatim=True).attribute([request])
    (freely,), (literally,) = free.sentences, literal.sentences

    written = {("occupation", "painter"), ("place of birth", "Rome")}
    otherwise = {("country of citizenship", "Italy"), ("date of birth", "1593-07-08")}
    assert cited(freely) == written | otherwise
    assert cited(literally) == written
    assert literal.marked == (
        f"Artemisia Gentileschi was an Italian painter [{ARTEMISIA}, occupation: painter] born in "
        f"Rome [{ARTEMISIA}, place of birth: Rome] on July 8, 1593."
    )
    assert phrases(literally, SpanKind.SUPPORTED) == phrases(freely, SpanKind.SUPPORTED)
    assert (literally.category, literally.na) == (freely.category, freely.na)
    assert freely.note is None
    assert literally.note is not None
    assert "does not state it word for word: " in literally.note


def test_a_value_within_a_word_or_number_does_not_stand_there_word_for_word() -> None:
    triples = (
        Triple(subject="Jan Vos", property="number of children", value="3"),
        Triple(subject="Jan Vos", property="sex or gender", value="male"),
    )
    told = "Jan Vos was a man who had three children by 1931 and painted female figures."
    request = AttributionRequest("", parse(told, triples), triples)
    (free,), _ = Attributor(None, None).attribute([request])
    (literal,), _ = Attributor(None, None, verbatim=True).attribute([request])
    assert cited(free.sentences[0]) == {("number of children", "3"), ("sex or gender", "male")}
    assert cited(literal.sentences[0]) == set()


def test_every_citation_is_one_of_the_triples_and_offsets_fit() -> None:
    answer = attribute(
        "Orazio, father of Artemisia, died in London.\n- Born: Rome, 1593\n- Father: Orazio"
    )
    given = {triple.citation for triple in TRIPLES}
    for one in answer.sentences:
        assert answer.text[one.start : one.end] == one.text
        assert set(one.citations) <= given
        for span in one.spans:
            assert answer.text[span.start : span.end] == span.text


def test_without_evidence_every_claim_lacks_support() -> None:
    answer = attribute("Artemisia was born in Rome. She painted.", ())
    assert [one.na for one in answer.sentences] == [True, True]
    assert "[NA]" in answer.marked


def test_passages_without_a_judge_support_nothing() -> None:
    request = AttributionRequest(
        "", parse("She was born in Rome."), (Passage(text="She was born in Rome."),)
    )
    (answer,), _ = Attributor(None, None).attribute([request])
    assert answer.sentences[0].na


@pytest.mark.parametrize("told", ["speaks Hindi", "has a command of Hindi", "spoke Hindi fluently"])
def test_every_verb_of_speaking_words_a_language(told: str) -> None:
    fact = Triple(
        subject="Varun Gandhi", property="languages spoken, written or signed", value="Hindi"
    )
    answer = attribute(f"Varun Gandhi {told}.", (fact,), Credulous())
    assert answer.sentences[0].citations == (fact.citation,)


@pytest.mark.parametrize("mark", ["**", "*", "_", "~~", "`"])
def test_emphasis_changes_nothing(mark: str) -> None:
    plain = sentence("She was a painter, born in Rome.")
    marked = sentence(f"She was a {mark}painter{mark}, born in Rome.")
    assert cited(plain) == cited(marked) == {("occupation", "painter"), ("place of birth", "Rome")}
