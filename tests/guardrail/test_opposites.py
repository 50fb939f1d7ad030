"""What denies a sentence, or tells its contrary, does not support it."""

import pytest

from guardrail import Guardrail
from guardrail.naming import SentenceTokens
from guardrail.opposites import may_oppose, opposes
from guardrail.phrases import parse
from guardrail.types import Passage

TRIAL = "In a trial of 412 patients, aspirin did not reduce mortality. Ibuprofen reduced pain."


def read(window: str, sentence: str) -> bool:
    """Whether a window opposes a sentence, as the reader of passages asks it."""
    told, tokens = SentenceTokens.of(sentence, 0), SentenceTokens.of(window, 0)
    return may_oppose(told, tokens) and opposes(parse([sentence])[0], parse([window])[0])


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        (TRIAL, "Aspirin reduced mortality in a trial of 412 patients."),
        (TRIAL, "Ibuprofen did not reduce pain."),
        (TRIAL, "Pain was not reduced by ibuprofen."),
        (TRIAL, "Ibuprofen increased pain."),
        ("The drug did not reduce mortality.", "Aspirin reduced mortality."),
        ("Sweden won the cup.", "Sweden didn’t win the cup."),
        ("The vaccine failed to reduce mortality.", "The vaccine reduced mortality."),
        ("The vaccine had no effect on pain.", "The vaccine had an effect on pain."),
        ("It is a myth that Anna Berg won the cup.", "Anna Berg won the cup."),
        ("It is false that Anna Berg won the cup.", "Anna Berg won the cup."),
        ("Four patients died.", "No patients died."),
        ("Four patients died.", "None of the patients died."),
        ("Four patients died.", "All patients survived."),
        ("Patients must not take more than two tablets.", "Patients must take two tablets."),
        ("The trial ended in March 2015.", "The trial began in March 2015."),
        ("The drug is safe for children.", "The drug is unsafe for children."),
        ("The drug is safe for children.", "The drug is not safe for children."),
        ("Profits rose by 12% in 2020.", "Profits fell by 12% in 2020."),
        ("The court acquitted Anna Berg.", "The court convicted Anna Berg."),
        ("The museum is closed on Mondays.", "The museum is open on Mondays."),
        ("Mortality was higher in women.", "Mortality was lower in women."),
        ("The bridge cost more than 5 million.", "The bridge cost less than 5 million."),
    ],
)
def test_what_denies_or_turns_a_sentence_opposes_it(window: str, sentence: str) -> None:
    assert read(window, sentence)


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        (TRIAL, "Ibuprofen reduced pain."),
        (TRIAL, "Aspirin did not reduce mortality."),
        ("The drug is not unsafe.", "The drug is safe."),
        ("The vaccine failed to reduce mortality.", "The vaccine did not reduce mortality."),
        ("She did not win in 1999, but she won in 2001.", "She won in 2001."),
        ("Anna Berg did not die until 1654.", "Anna Berg died in 1654."),
        ("She was not only a poet but also a painter.", "She was a poet."),
        ("Anna Berg never married Carl Dahl.", "Anna Berg married Otto Dahl in 1950."),
        ("Anna Berg was not born in Paris.", "Anna Berg was born in London."),
        ("Profits fell in 2019 and rose in 2020.", "Profits rose in 2020."),
        ("The trial began in 2014 and ended in 2015.", "The trial ended in 2015."),
        ("Costs rose while profits fell.", "Costs rose."),
        ("He turned down offers to play.", "He refused to play."),
        ("Games not held on Sundays are cheap.", "Games held on Sundays are dear."),
        ("The town has more than 9 million people.", "The town has less than 11 million people."),
    ],
)
def test_what_says_the_same_or_something_else_does_not(window: str, sentence: str) -> None:
    assert not read(window, sentence)


@pytest.mark.parametrize(
    "sentence",
    ["Ibuprofen did not reduce pain.", "Aspirin reduced mortality in a trial of 412 patients."],
)
def test_a_passage_that_denies_a_sentence_is_not_cited(guard: Guardrail, sentence: str) -> None:
    answer = guard.check(question="", answer=sentence, evidence=[Passage(text=TRIAL)])
    (only,) = answer.sentences
    assert only.citations == ()
    assert only.na
