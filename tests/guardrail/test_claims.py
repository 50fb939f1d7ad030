"""What counts as a claim: a hedge exempts its own clause and nothing behind it."""

import pytest

from guardrail import STRICT, Guardrail
from guardrail.claims import is_claim
from guardrail.phrases import parse
from guardrail.text.sentences import Stretch
from guardrail.types import Passage

FALSE = "Mary Shelley was born on 4 May 1999"
HEDGED = [
    f"Please note that {FALSE}.",
    f"I do not know why, but {FALSE}.",
    f"{FALSE}, right?",
    f"Let me tell you: {FALSE}.",
    f"The following is true: {FALSE}.",
    f"Did you know that {FALSE}?",
    f"I'm not sure, {FALSE}.",
]
GREETED = [
    "No patients died during the trial.",
    "No side effects were reported.",
    "No one was injured.",
    "No, all patients survived.",
    "Yes, all patients survived.",
    "Sure, all patients survived.",
    "Certainly all patients survived.",
    "Of course! All patients survived",
    "Sorry, no patients died.",
    "I'm sorry, no patients died.",
    "Thanks, the trial was safe.",
    "Hello Anna, all patients survived.",
    "Great success, all patients survived.",
    "Glad to help: all patients survived.",
]
UNNAMED = [
    "Here is the result: all patients survived.",
    "The following patients died.",
    "Please note the drug is safe.",
    "Please note: the drug is safe.",
    "Let me assure you that no patients died.",
    "I'm not sure, no patients died.",
    "I don’t know why, but all patients survived.",
    "As an AI, I don't know, but the drug is safe.",
    "Is it not true that no patients died?",
    "Isn’t the drug safe?",
    "Here is The Anchor, a pub by the river.",
    "The Anchor is not known to be cheap.",
]
INSTRUCTIONS = [
    "Please double the dose of insulin.",
    "Double the dose of insulin.",
    "Sure, please stop the treatment.",
]


def claims(sentence: str) -> bool:
    """Whether a sentence on its own is a claim."""
    return is_claim(parse([sentence])[0], Stretch(sentence, 0, len(sentence)))


@pytest.mark.parametrize(
    "sentence", ["She was a writer.", *HEDGED, *GREETED, *UNNAMED, *INSTRUCTIONS]
)
def test_statements_are_claims_however_they_are_hedged(sentence):
    assert claims(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "I don't know.",
        "I could not find information on Mary Shelley, Percy Shelley, and William Godwin.",
        "I do not know when Mary Shelley was born.",
        "Who was she?",
        "Is there anything else about Mary Shelley?",
        "Hello there!",
        "I'm sorry, I cannot answer that.",
        "Her date of birth is unknown.",
        "Here is what I found about Mary Shelley:",
        "I hope this helps.",
        "Sure!",
        "No.",
        "Hello! 😊",
        "Hi Anna, how can I help you today?",
        "Thank you for asking, I hope this helps!",
        "Sure, here is what I found:",
        "Of course, I'm happy to help!",
        "Great question!",
        "Sure, I can help with that.",
        "If you have any other questions, feel free to ask!",
        "You’re welcome!",
        "Let me know if you have questions.",
        "Please let me know if the answer helps.",
        "Feel free to ask, and I will look further.",
        "I am sorry, but I cannot answer that.",
        "I don't know whether the drug is safe.",
        "I cannot say, and I'm not sure which drug was safe.",
        "Please consult your doctor.",
        "Please provide more details about the trial.",
        "Is the drug safe, or not?",
    ],
)
def test_what_states_nothing_is_no_claim(sentence):
    assert not claims(sentence)


@pytest.mark.parametrize("sentence", [GREETED[0], GREETED[4], UNNAMED[0], INSTRUCTIONS[0]])
def test_no_politeness_carries_a_statement_past_strict(exact_guard: Guardrail, sentence):
    evidence = [Passage(text="Four patients died during the trial.")]
    answer = exact_guard.check(
        question="Did patients die?", answer=sentence, evidence=evidence, policy=STRICT
    )
    assert sentence not in answer.text


@pytest.mark.parametrize("sentence", HEDGED)
def test_no_hedge_carries_a_false_date_past_strict(exact_guard: Guardrail, sentence):
    answer = exact_guard.check(
        question="Who was Mary Shelley, the wife of Percy Bysshe Shelley?",
        answer=f"Mary Shelley was a travel writer. {sentence}",
        policy=STRICT,
    )
    assert "1999" not in answer.text
    assert answer.text == "Mary Shelley was a travel writer."


def test_a_stranger_who_shares_a_value_supports_nothing(exact_guard: Guardrail):
    """The graph knows somebody whose partner was called Paris; Ada's birth is not about them."""
    answer = exact_guard.check(
        question="Who was Ada Lovelace?",
        answer="Ada Lovelace was a mathematician. She was born in Paris.",
    )
    assert answer.sentences[1].na or answer.sentences[1].category == "contradictory"
    assert answer.sentences[1].citations == ()


def test_the_person_asked_for_is_the_one_named(exact_guard: Guardrail):
    """William Godwin, who is only reached from her, died in London; she did not."""
    answer = exact_guard.check(
        question="Who was Mary Shelley, the wife of Percy Bysshe Shelley?",
        answer="Mary Shelley was a travel writer. Her mother was Mary Wollstonecraft. "
        "She died in London.",
    )
    assert answer.sentences[1].category == "supportive"
    assert answer.sentences[2].citations == ()


def test_another_language_is_told(exact_guard: Guardrail):
    question = "Wer war Ada Lovelace?"
    answer = "Ada Lovelace war eine englische Mathematikerin und wurde im Jahr 1815 geboren."
    checked = exact_guard.check(question=question, answer=answer)
    assert [problem.part for problem in checked.errors] == ["language"]
    assert checked.sentences
    english = exact_guard.check(question="Who was Ada Lovelace?", answer="She was born in London.")
    assert english.errors == ()
