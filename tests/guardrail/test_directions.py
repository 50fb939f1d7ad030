"""Which way round a tie is told, and that no tie is cited the other way round."""

import pytest

from guardrail.directions import told_otherwise
from guardrail.naming import SentenceTokens

ANNA, BRUNO = "Anna Weber", "Bruno Weber"


@pytest.mark.parametrize(
    ("text", "bruno_is"),
    [
        ("Anna Weber was the daughter of Bruno Weber.", "father"),
        ("Anna Weber was the daughter of Clara Weber and Bruno Weber.", "father"),
        ("Bruno Weber's eldest daughter was Anna Weber.", "father"),
        ("Bruno Weber, the father of Anna Weber, was a baker.", "father"),
        ("Bruno Weber and Clara Weber had a daughter, Anna Weber.", "father"),
        ("Anna Weber was born to Bruno Weber.", "father"),
        ("Her father was Bruno Weber.", "father"),
        ("Anna Weber was the mother of Bruno Weber.", "child"),
        ("Anna Weber had a son named Bruno Weber.", "child"),
        ("Anna Weber's son Bruno Weber was a baker.", "child"),
        ("Bruno Weber was a son of Anna Weber.", "child"),
        ("The father of Anna Weber was Bruno Weber.", "father"),
        ("The teacher of Anna Weber was Bruno Weber.", "student of"),
        ("Anna Weber was tutor to Bruno Weber.", "student"),
        ("Anna Weber was a student of Bruno Weber.", "student of"),
        ("Anna Weber studied under Bruno Weber.", "student of"),
        ("Anna Weber taught Bruno Weber.", "student"),
        ("Bruno Weber was a pupil of Anna Weber.", "student"),
        ("Bruno Weber was her father.", "father"),
        ("Bruno Weber was her son.", "child"),
        ("Bruno Weber taught her.", "student of"),
        ("Bruno Weber studied under her.", "student"),
        ("Anna Weber succeeded her father, Bruno Weber, as mayor.", "succeeds"),
        ("Anna Weber was succeeded as mayor by Bruno Weber.", "succeeded by"),
        ("Bruno Weber succeeded her.", "succeeded by"),
        ("Anna Weber was preceded by Bruno Weber.", "succeeds"),
        ("Anna Weber preceded Bruno Weber.", "succeeded by"),
        ("Bruno Weber was the successor of Anna Weber.", "succeeded by"),
        ("Her predecessor was Bruno Weber.", "succeeds"),
    ],
)
def test_the_words_beside_a_name_tell_its_end_of_a_tie(text: str, bruno_is: str) -> None:
    sentence = SentenceTokens.of(text, 0)
    at = text.index(BRUNO)
    spans = [(at, at + len(BRUNO))]
    turned = {"father": "child", "child": "father", "student of": "student"}
    turned |= {"student": "student of", "succeeds": "succeeded by", "succeeded by": "succeeds"}
    assert not told_otherwise(text, sentence, bruno_is, spans, [])
    assert told_otherwise(text, sentence, turned[bruno_is], spans, [])


def test_the_subjects_end_counts_where_the_values_is_right() -> None:
    """Clara is somebody's mother here, but Bruno is no child of hers."""
    text = "Bruno Weber and Clara Weber had a daughter."
    sentence = SentenceTokens.of(text, 0)
    clara, bruno = [(16, 27)], [(0, 11)]
    assert text[16:27] == "Clara Weber"
    assert not told_otherwise(text, sentence, "mother", clara, [])
    assert told_otherwise(text, sentence, "mother", clara, bruno)


def test_the_subjects_end_says_nothing_where_both_ends_are_told() -> None:
    text = "Anna Weber, a student of Clara Weber, was the teacher of Bruno Weber."
    sentence = SentenceTokens.of(text, 0)
    anna, bruno = [(text.index(name), text.index(name) + len(name)) for name in (ANNA, BRUNO)]
    assert not told_otherwise(text, sentence, "student", [bruno], [anna])
    assert told_otherwise(text, sentence, "student of", [bruno], [anna])


def test_other_words_and_other_relations_tell_no_end() -> None:
    text = "Anna Weber met Bruno Weber, who knew the daughter of a baker."
    sentence = SentenceTokens.of(text, 0)
    at = text.index(BRUNO)
    for label in ("father", "child", "spouse", "place of birth"):
        assert not told_otherwise(text, sentence, label, [(at, at + len(BRUNO))], [])
