"""Passages as evidence: what they support of a sentence, and what they do not."""

from collections.abc import Sequence

import pytest

from guardrail.attribution import AttributionRequest, Attributor
from guardrail.errors import JudgeError
from guardrail.markers.grammar import parse
from guardrail.text.values import tokenise
from guardrail.types import (
    AttributedAnswer,
    Category,
    Evidence,
    NLIScores,
    Passage,
    Problem,
    Sentence,
    SpanKind,
    Triple,
)
from guardrail.vocabulary import STOP_WORDS
from judges.base import NLIJudge, Pair

OPENED = "The bridge was opened in 1932."
BORN = Triple(subject="Ada Lovelace", property="place of birth", value="London")


class Wordy:
    """A back end that takes a sentence for entailed whose words all stand in the premise.

    So small judges do; order and grammar are left to the rules.
    """

    name = "wordy"

    def __init__(self, whole: NLIScores | None = None, fails_at: int = 0) -> None:
        self.asked: list[list[Pair]] = []
        self._whole = whole
        self._fails_at = fails_at

    def warm_up(self) -> None:
        """Nothing to load."""

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        self.asked.append(list(pairs))
        if len(self.asked) == self._fails_at:
            raise JudgeError("out of memory")
        if self._whole is not None and len(self.asked) == 1:
            return [self._whole] * len(pairs)
        return [_scores(0.9 if _stems(two) <= _stems(one) else 0.1) for one, two in pairs]


def _stems(text: str) -> set[str]:
    return {one.stem for one in tokenise(text) if one.folded not in STOP_WORDS}


def _scores(entailment: float, contradiction: float = 0.0) -> NLIScores:
    return NLIScores(
        entailment=entailment,
        neutral=1.0 - entailment - contradiction,
        contradiction=contradiction,
    )


def attribute(
    answer: str, *evidence: Evidence | str, judge: NLIJudge | None = None
) -> tuple[AttributedAnswer, list[Problem]]:
    """Ground an answer; texts stand for passages that are cited as p1, p2 and so on."""
    pieces = [
        Passage(text=one, id=f"p{place}") if isinstance(one, str) else one
        for place, one in enumerate(evidence, start=1)
    ]
    request = AttributionRequest("", parse(answer, ()), tuple(pieces))
    (attributed,), problems = Attributor(judge or Wordy(), None).attribute([request])
    return attributed, problems


def last(answer: str, *evidence: Evidence | str, judge: NLIJudge | None = None) -> Sentence:
    """The last sentence of a grounded answer."""
    return attribute(answer, *evidence, judge=judge)[0].sentences[-1]


def phrases(one: Sentence, kind: SpanKind) -> list[str]:
    return [span.text for span in one.spans if span.kind is kind]


def test_a_detail_that_the_passage_lacks_costs_the_rest_no_citation() -> None:
    answer, _ = attribute("The bridge was opened in 1932 by the king.", OPENED)
    assert answer.marked == (
        "The bridge was opened in 1932 [p1, passage: The bridge was opened in 1932.] "
        "by the king [NA]."
    )
    (only,) = answer.sentences
    assert only.category is Category.PARTIALLY_SUPPORTIVE
    assert only.na


@pytest.mark.parametrize(
    ("passage", "told", "held", "lacking"),
    [
        (
            "Ada Lovelace was born in London in 1815.",
            "Ada Lovelace, an English mathematician, was born in London in 1815.",
            ["London", "1815"],
            ["English", "mathematician"],
        ),
        (
            "Ada Lovelace was born in London in 1815.",
            "Ada Lovelace was born in London in 1815 and studied in Paris.",
            ["London", "1815"],
            ["studied", "Paris"],
        ),
        (
            "Ada Lovelace died in Kent in 1852.",
            "Ada Lovelace was born in London in 1815 and died in Kent in 1852.",
            ["Kent", "1852"],
            ["born", "London", "1815"],
        ),
        (
            "Ada Lovelace was born in London in 1815.",
            "Ada Lovelace was born in London on 10 December 1815.",
            ["London"],
            ["10 December 1815"],
        ),
        (
            "In 1932 the bridge was opened.",
            "The bridge was opened by the king in 1932.",
            ["1932"],
            ["king"],
        ),
        (
            "The film grossed 3.5 million dollars on 4 May 2010.",
            "The film grossed 3,500,000 dollars on May 4, 2010 in Canada.",
            ["3,500,000", "dollars", "May 4, 2010"],
            ["Canada"],
        ),
        (
            "Ada Lovelace was a mathematician.",
            "Ada Lovelace was a gifted mathematician.",
            ["mathematician"],
            ["gifted"],
        ),
    ],
)
def test_covered_phrases_are_told_from_uncovered_ones(
    passage: str, told: str, held: list[str], lacking: list[str]
) -> None:
    # Of a number the judge reads figures alone, so that it is told what is entailed.
    judge = Wordy() if "3,500,000" not in told else Entailing()
    only = last(told, passage, judge=judge)
    assert phrases(only, SpanKind.SUPPORTED) == held
    assert phrases(only, SpanKind.NA) == lacking
    assert only.category is Category.PARTIALLY_SUPPORTIVE
    assert [one.entity for one in only.citations] == ["p1"]


class Entailing(Wordy):
    """A back end that finds everything but whole sentences entailed."""

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        self.asked.append(list(pairs))
        return [_scores(0.1 if len(self.asked) == 1 else 0.9)] * len(pairs)


@pytest.mark.parametrize(
    ("passage", "told"),
    [
        ("The bridge was opened in 1932 and closed in 1950.", "The bridge was closed in 1932."),
        ("Smith beat Jones in 1999.", "Jones beat Smith in 1999."),
        ("Smith beat Jones in 1999.", "Smith was beaten by Jones in 1999."),
        ("Smith won in 1999. Jones won in 2000.", "Jones won in 1999."),
        ("Smith won the race in 1999; Jones won it in 2000.", "Jones won the race in 1999."),
        ("He was born in Rome in 1950. He moved to Paris in 1970.", "He moved to Paris in 1950."),
        ("She had 3 sons and 2 daughters.", "She had 2 sons."),
        ("She sold Nordlicht to Siemens in 2006.", "Siemens sold Nordlicht in 2006."),
        (
            "The dam was completed in 1961. It feeds the port. The mill was added in 1974.",
            "The dam was completed in 1974.",
        ),
    ],
)
@pytest.mark.parametrize("detail", ["", " in the rain"])
def test_words_in_other_roles_support_nothing(passage: str, told: str, detail: str) -> None:
    only = last(f"{told[:-1]}{detail}.", passage)
    assert only.citations == ()
    assert only.category is Category.IRRELEVANT


@pytest.mark.parametrize(
    ("passage", "told", "supported"),
    [
        ("The mill was added in 1974.", "The mill was added in 1961.", False),
        ("The town has a population of 52,300.", "It has a population of 61,000.", False),
        ("The town has a population of 52,300.", "It has a population of over 50,000.", True),
        ("The mill was added in 1974.", "The mill was added before 1980.", True),
    ],
)
def test_another_figure_in_the_same_place_is_no_support(
    passage: str, told: str, supported: bool
) -> None:
    only = last(told, passage, judge=Agreeing())
    assert (only.category is Category.SUPPORTIVE) is supported
    assert bool(only.citations) is supported


@pytest.mark.parametrize(
    ("passage", "told"),
    [
        ("Smith beat Jones in 1999.", "Jones was beaten by Smith in 1999."),
        ("The bridge was built in 1930 and opened in 1932.", "The bridge was built in 1930."),
        ("The bridge was built in 1930 and opened in 1932.", "The bridge was opened in 1932."),
        ("The bridge was completed and opened in 1932.", "The bridge was completed in 1932."),
        ("Smith married Jones in 1999. Brown left in 2000.", "Jones married Smith in 1999."),
    ],
)
def test_the_same_roles_in_another_order_are_supported(passage: str, told: str) -> None:
    assert last(told, passage, judge=Agreeing()).category is Category.SUPPORTIVE


class Agreeing(Wordy):
    """A back end that finds everything entailed."""

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        self.asked.append(list(pairs))
        return [_scores(0.95)] * len(pairs)


@pytest.mark.parametrize(
    ("passage", "told"),
    [
        ("The bridge was not opened in 1932.", "The bridge was opened in 1932 by the king."),
        (OPENED, "The bridge was not opened in 1932 by the king."),
        ("The bridge was opened in Rome in 1932.", "The bridge was opened in Paris in 1932."),
        ("The bridge was opened in 1932.", "The tunnel was opened in 1932 by the king."),
        ("The Harbour Bridge was opened.", "The Harbour Bridge was opened by the king."),
        (
            "He was elected president in 1960 and resigned in 1966.",
            "He was elected president in 1966 after a long campaign.",
        ),
        ("Ali was a minister of Kenya.", "Ali was a vice minister of Kenya."),
        ("The Bears lost to the Colts 21-10 in May.", "The Bears lost to the Colts 21-14 in May."),
        ("Kaya is a dish of Kenya.", "Kaya is an event of Kenya in May."),
        (
            "The Kingdom of Norway is a federal republic by name.",
            "Norway was called the Federal Republic of Norway in May.",
        ),
    ],
)
def test_no_part_is_supported_where_the_rest_would_say_something_else(
    passage: str, told: str
) -> None:
    assert last(told, passage, judge=Entailing()).citations == ()


@pytest.mark.parametrize(
    ("passage", "told", "contradiction", "supports"),
    [
        # Nothing in the passage stands against the king; the judge alone has to be very sure.
        (OPENED, "The bridge was opened in 1932 by the king.", 0.8, True),
        (OPENED, "The bridge was opened in 1932 by the king.", 0.98, False),
        (OPENED, "The bridge was opened in 1932 by Bavin.", 0.8, True),
        ("Lang saw the bridge opened in 1932.", "The bridge opened in 1932 for Bavin.", 0.8, False),
        (OPENED, "The bridge was opened in 1932 after 8 years.", 0.8, True),
        (
            "The bridge of 500 metres was opened in 1932.",
            "The bridge was opened in 1932 after 8 years.",
            0.8,
            False,
        ),
    ],
)
def test_a_passage_that_contradicts_a_sentence_supports_no_part_of_it(
    passage: str, told: str, contradiction: float, supports: bool
) -> None:
    judge = Wordy(whole=_scores(0.02, contradiction=contradiction))
    assert bool(last(told, passage, judge=judge).citations) is supports


def test_a_part_that_the_judge_does_not_find_entailed_is_not_cited() -> None:
    told = "The bridge was inaugurated in 1932 by the king."
    assert last(told, OPENED).citations == ()  # *inaugurated* stands nowhere in the passage


def test_two_passages_support_two_parts() -> None:
    answer, _ = attribute(
        "Ada Lovelace was born in London in 1815 and died in Kent in 1852.",
        "Ada Lovelace was born in London in 1815.",
        "Ada Lovelace died in Kent in 1852.",
    )
    (only,) = answer.sentences
    assert [one.entity for one in only.citations] == ["p1", "p2"]
    assert phrases(only, SpanKind.SUPPORTED) == ["London", "1815", "Kent", "1852"]
    assert only.category is Category.PARTIALLY_SUPPORTIVE  # no passage tells all of it
    assert "[NA]" not in answer.marked


def test_triples_and_passages_support_a_sentence_together() -> None:
    told = "Ada Lovelace was born in London and worked with Charles Babbage in Turin."
    only = last(told, BORN, "Ada Lovelace worked with Charles Babbage.")
    assert {one.property for one in only.citations} == {"place of birth", "passage"}
    assert phrases(only, SpanKind.SUPPORTED) == ["London", "Charles Babbage"]
    assert phrases(only, SpanKind.NA) == ["Turin"]
    assert only.category is Category.PARTIALLY_SUPPORTIVE


def test_a_passage_takes_nothing_from_what_triples_support() -> None:
    judge = Wordy()
    only = last("Ada Lovelace was born in London.", BORN, "Ada Lovelace met Babbage.", judge=judge)
    assert only.category is Category.SUPPORTIVE
    assert [one.property for one in only.citations] == ["place of birth"]
    assert len(judge.asked) == 1


@pytest.mark.parametrize(
    ("told", "evidence", "calls"),
    [
        ("The bridge was opened in 1932.", OPENED, [1]),
        ("The bridge was opened in 1932 by the king.", OPENED, [1, 1]),
        ("The tunnel was opened in 1950.", OPENED, [1]),
        ("Ada Lovelace was born in London in Kent.", BORN, [0]),
        ("Is that all?", OPENED, [0]),
    ],
)
def test_the_judge_is_asked_again_only_where_a_part_may_be_supported(
    told: str, evidence: Evidence | str, calls: list[int]
) -> None:
    judge = Wordy()
    attribute(told, evidence, judge=judge)
    assert [len(pairs) for pairs in judge.asked] == [number for number in calls if number]


def test_a_window_costs_one_more_question_at_most() -> None:
    judge = Wordy()
    text = "Ada Lovelace was born in London. She died in Kent. She was buried in Hucknall. She won."
    told = "Ada Lovelace was born in London, died in Kent and was buried in Hucknall by Byron."
    attribute(told, text, judge=judge)
    assert len(judge.asked) == 2
    assert len(judge.asked[1]) <= len(judge.asked[0]) == 2


def test_without_a_judge_no_part_is_supported() -> None:
    request = AttributionRequest(
        "", parse("The bridge was opened in 1932 by the king.", ()), (Passage(text=OPENED),)
    )
    (answer,), problems = Attributor(None, None).attribute([request])
    assert answer.sentences[0].citations == ()
    assert problems == []


def test_a_judge_that_fails_on_the_parts_is_told_and_leaves_the_rest() -> None:
    answer, problems = attribute(
        "The bridge was opened in 1932. The bridge was opened in 1932 by the king.",
        OPENED,
        judge=Wordy(fails_at=2),
    )
    assert [one.category for one in answer.sentences] == [Category.SUPPORTIVE, Category.IRRELEVANT]
    assert [one.part for one in problems] == ["judge"]


def test_an_unsure_judge_is_asked_for_the_part_that_the_passage_words() -> None:
    """A judge that is not sure may have overlooked the name of which the passage has nothing."""
    told = "The bridge was opened in 1932 by George Lansbury."
    only = last(told, OPENED, judge=Wordy(whole=_scores(0.6)))
    assert phrases(only, SpanKind.NA) == ["George Lansbury"]
    assert only.category is Category.PARTIALLY_SUPPORTIVE
    sure = last(told, OPENED, judge=Wordy(whole=_scores(0.9)))
    assert sure.category is Category.SUPPORTIVE
    elsewhere = f"{OPENED} It is long. George Lansbury closed it."
    assert last(told, elsewhere, judge=Wordy(whole=_scores(0.6))).category is not (
        Category.SUPPORTIVE
    )
    other = "The bridge was inaugurated in 1932 by George Lansbury."
    unheld = last(other, OPENED, judge=Wordy(whole=_scores(0.6)))
    assert unheld.category is Category.SUPPORTIVE  # nothing better is known


LIFE = "She was a mathematician. She was born in London in 1815. She worked with Babbage."


def test_a_passage_may_call_its_subject_by_a_pronoun() -> None:
    ada = Passage(text=LIFE, title="Ada Lovelace")
    only = last("Ada Lovelace was born in London in 1815 in a palace.", ada, judge=Entailing())
    assert phrases(only, SpanKind.SUPPORTED) == ["London", "1815"]
    assert phrases(only, SpanKind.NA) == ["palace"]
    assert [one.value for one in only.citations] == ["She was born in London in 1815."]


@pytest.mark.parametrize(
    "told",
    [
        "Ada Lovelace was born in London in 1815 in a palace.",
        "Ada Lovelace wrote. She was born in London in 1815 in a palace.",
    ],
)
def test_a_passage_on_somebody_else_supports_no_part(told: str) -> None:
    mary = Passage(text=LIFE, title="Mary Somerville")
    assert last(told, mary, judge=Entailing()).citations == ()
