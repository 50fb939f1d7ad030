"""Sentences that stand in their evidence, and those that mean somebody else there."""

import pytest

from judges.conner.statements import refers_back, stated

ADA = "Ada Lovelace was a mathematician. She was born in 1815. She died in 1852."
CHARLES = "Charles Babbage was an engineer. He was born in 1791. He died in 1871."


def test_a_sentence_that_names_its_subject_is_stated_wherever_it_stands():
    sentences = ("Charles Babbage was  an engineer.", "Ada Lovelace was a mathematician.")
    assert stated(sentences, [ADA, CHARLES]) == [CHARLES, ADA]


def test_a_sentence_that_refers_back_is_not_stated_in_a_text_about_somebody_else():
    sentences = ("Ada Lovelace was a mathematician.", "He was born in 1791.")
    assert stated(sentences, [ADA, CHARLES]) == [ADA, None]
    assert stated(("He was born in 1791.",), [CHARLES]) == [None]


def test_a_sentence_that_refers_back_is_stated_after_the_one_it_follows_in_the_evidence():
    own = ("Ada Lovelace was a mathematician.", "She was born in 1815.", "She died in 1852.")
    assert stated(own, [CHARLES, ADA]) == [ADA, ADA, ADA]


def test_sentences_that_refer_back_do_not_vouch_for_each_other():
    sentences = ("Ada Lovelace wrote.", "He was born in 1791.", "He died in 1871.")
    assert stated(sentences, [CHARLES]) == [None, None, None]


def test_a_sentence_in_between_may_be_about_another():
    both = "Ada Lovelace was a countess. Charles Babbage was an engineer. He was born in 1791."
    assert stated(("Ada Lovelace was a countess.", "He was born in 1791."), [both]) == [both, None]


def test_a_passage_may_be_cut_before_a_sentence_that_refers_back():
    pieces = ["Charles Babbage was an engineer.", "He was born in 1791. He died in 1871."]
    own = ("Charles Babbage was an engineer.", "He was born in 1791.", "He died in 1871.")
    assert stated(own, pieces) == [pieces[0], pieces[1], pieces[1]]
    assert stated(own, [pieces[0], ADA, pieces[1]]) == [pieces[0], None, None]
    assert stated(own, pieces[::-1]) == [pieces[0], None, None]


def test_a_part_of_a_sentence_is_not_stated():
    assert stated(("Rome is old",), ["It is false that Rome is old."]) == [None]
    assert stated((), [ADA]) == []
    assert stated(("Rome is old.",), []) == [None]


@pytest.mark.parametrize(
    "sentence",
    [
        "He was born in 1950.",
        "“Her father was a poet.",
        "In April 1950 he moved to Paris.",
        "However, this was false.",
        "The latter won in Paris.",
        "The film was released in 1950.",
        "And it grew.",
    ],
)
def test_what_refers_back(sentence):
    assert refers_back(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "The actress Emma Thompson said that she was tired.",
        "In 1950, Ada moved to Paris with her mother.",
        "Paris is old.",
        "The capital of France is Paris.",
        "However.",
        "",
    ],
)
def test_what_does_not_refer_back(sentence):
    assert not refers_back(sentence)
