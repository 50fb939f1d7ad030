"""Claims in signs that are no plain letters are judged, or count as unsupported: none is free."""

import string
import unicodedata
from collections.abc import Callable

import pytest

from guardrail import Action, GuardedAnswer, Guardrail, Passage
from guardrail.core.types import Category, Effect, SpanKind

EVIDENCE = [
    Passage("Ada Lovelace was born in London in 1815. The inn has 12 rooms."),
    Passage("Zoë Gérard lives in Łódź. The force is λ = 5 N/m. The plate measures 5 m²."),
    Passage("Nguyễn Văn An was born in Đà Nẵng. Beijing is the capital of China."),
]
TRUE = "Ada Lovelace was born in London in 1815."
FALSE = "Ada Lovelace was born in Paris in 1975."


def in_signs(*, upper: int, lower: int, figures: str) -> Callable[[str], str]:
    signs = {letter: chr(upper + place) for place, letter in enumerate(string.ascii_uppercase)}
    signs |= {letter: chr(lower + place) for place, letter in enumerate(string.ascii_lowercase)}
    table = str.maketrans(signs | dict(zip(string.digits, figures, strict=True)))
    return lambda text: text.translate(table)


def with_circles(text: str) -> str:
    return "".join(f"{sign}\u20dd" if sign.isalnum() else sign for sign in text)


LEGIBLE = {
    "circles": in_signs(upper=0x24B6, lower=0x24D0, figures="⓪①②③④⑤⑥⑦⑧⑨"),
    "squares": in_signs(upper=0x1F130, lower=0x1F130, figures="⓿❶❷❸❹❺❻❼❽❾"),
    "black squares": in_signs(upper=0x1F170, lower=0x1F170, figures="🄋➀➁➂➃➄➅➆➇➈"),
    "letters of flags": in_signs(upper=0x1F1E6, lower=0x1F1E6, figures=string.digits),
    "mathematical": in_signs(upper=0x1D400, lower=0x1D41A, figures="𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗"),
    "fullwidth": in_signs(upper=0xFF21, lower=0xFF41, figures="０１２３４５６７８９"),
    "dingbats alone": lambda text: text.translate(str.maketrans(string.digits, "⓿❶❷❸❹❺❻❼❽❾")),
    "circles drawn round": with_circles,
    "emoji at each word": lambda text: text.replace(" ", "🎉 "),
}
NEVER_SEEN = {
    "unassigned": in_signs(upper=0xE0800, lower=0xE0840, figures=string.digits),
    "the wrong way round": lambda text: f"\u202e{text[::-1]}",
}
"""What holds or turns them is taken out of what comes in."""
ILLEGIBLE = {
    "braille": in_signs(upper=0x2801, lower=0x2801, figures=string.digits),
    "private": in_signs(upper=0xE041, lower=0xE061, figures=string.digits),
    "hieroglyphs": in_signs(upper=0x13000, lower=0x13030, figures=string.digits),
    "Lisu that looks like Latin": in_signs(upper=0xA4D0, lower=0xA4D0, figures=string.digits),
    "letter by letter": lambda text: " ".join(text),
    "one word of all": lambda text: "".join(filter(str.isalpha, text)) * 4,
}


def judged(guard: Guardrail, answer: str, policy: str = "strict") -> GuardedAnswer:
    return guard.check("Who was Ada Lovelace?", answer, evidence=EVIDENCE, policy=policy)


@pytest.mark.parametrize("written", LEGIBLE.values(), ids=LEGIBLE)
def test_a_claim_in_signs_for_letters_is_judged_as_in_letters(
    guard: Guardrail, written: Callable[[str], str]
) -> None:
    assert judged(guard, written(FALSE)).action is Action.REFUSE
    answer = judged(guard, written(TRUE))
    assert answer.action is Action.PASS
    assert answer.text == written(TRUE)
    assert answer.sentences[0].citations


@pytest.mark.parametrize("written", ILLEGIBLE.values(), ids=ILLEGIBLE)
def test_what_nobody_can_read_is_neither_supported_nor_without_a_claim(
    guard: Guardrail, written: Callable[[str], str]
) -> None:
    (sentence,) = judged(guard, written(FALSE), "annotate").sentences
    assert sentence.category not in (None, Category.SUPPORTIVE)
    assert any(item.check == "unread" for item in sentence.findings)


@pytest.mark.parametrize("written", NEVER_SEEN.values(), ids=NEVER_SEEN)
def test_what_is_never_seen_does_not_leave_as_a_claim(
    guard: Guardrail, written: Callable[[str], str]
) -> None:
    answer = judged(guard, written(FALSE))
    assert answer.text != written(FALSE)
    assert all(item.category is not Category.SUPPORTIVE for item in answer.sentences)


@pytest.mark.parametrize("word", ["⠏⠁⠗⠊⠎", "ᴘᴀʀɪѕ", "sᴉɹɐԀ", "\ue050\ue041", "ꓑꓮꓣꓲꓢ", "เอดา"])
def test_one_word_that_cannot_be_read_leaves_the_rest_without_support(
    guard: Guardrail, word: str
) -> None:
    (sentence,) = judged(guard, TRUE.replace("London", word), "annotate").sentences
    assert sentence.category is Category.PARTIALLY_SUPPORTIVE
    assert any(span.text == word and span.kind is SpanKind.NA for span in sentence.spans)


@pytest.mark.parametrize(
    "layout", ["# {}", "**{}**", "{}:", "```\n{}\n```", "| {} | a |\n|--|--|\n| b | c |"]
)
def test_no_layout_makes_it_free(guard: Guardrail, layout: str) -> None:
    answer = layout.format(ILLEGIBLE["braille"]("Paris"))
    first = judged(guard, answer, "annotate").sentences[0]
    assert first.category is Category.IRRELEVANT


@pytest.mark.parametrize(
    "answer",
    [
        f"✅ {TRUE} 🎉",
        "Ada Lovelace was born in London🎉 in 1815.",
        "Ada Lovelace was born in London 🇬🇧 in 1815 ⭐⭐⭐.",
        f"① {TRUE}\n② The inn has 12 rooms.",
        f"1\ufe0f\u20e3 {TRUE}",
        f"ℹ️ {TRUE}",
        f"→ {TRUE} \U0001fae8",
        "🅿️ The inn has 12 rooms.",
        "Zoë Gérard lives in Łódź.",
        "The force is 𝜆 = 5 N/m.",
        "The plate measures 5 m².",
        "Nguyễn Văn An was born in Đà Nẵng.",
        "Beijing (倫敦) is the capital of China.",
    ],
)
def test_ordinary_signs_do_a_true_sentence_no_harm(guard: Guardrail, answer: str) -> None:
    found = judged(guard, answer)
    assert found.action is Action.PASS
    assert {sentence.category for sentence in found.sentences} == {Category.SUPPORTIVE}
    assert not any(item.check == "unread" for each in found.sentences for item in each.findings)


@pytest.mark.parametrize("answer", ["🎉", "———", "❤️ 🇫🇷", "ℹ️", "🆗", "🅿️", "## 🇫🇷 France"])
def test_a_picture_or_a_line_alone_claims_nothing(guard: Guardrail, answer: str) -> None:
    found = judged(guard, answer)
    assert found.action is Action.PASS
    assert all(sentence.category is None for sentence in found.sentences)


def test_signs_that_the_evidence_has_are_known(guard: Guardrail) -> None:
    sign = "\U00013000\U00013001"
    assert unicodedata.category(sign[0]) == "Lo"
    evidence = [Passage(f"The sign {sign} means king.")]
    stated = f"The sign {sign} means king."
    assert guard.check("", stated, evidence=evidence, policy="strict").action is Action.PASS
    other = guard.check("", stated.replace(sign, sign[::-1]), evidence=evidence, policy="annotate")
    assert other.sentences[0].category is not Category.SUPPORTIVE


def test_what_stands_too_far_behind_to_be_read_is_not_supported(guard: Guardrail) -> None:
    stated = f"{', '.join(['Ada Lovelace was born in London in 1815'] * 40)}, and she was a horse."
    (sentence,) = judged(guard, stated, "annotate").sentences
    (unread,) = [item for item in sentence.findings if item.check == "unread"]
    assert unread.effect is Effect.MISSING
    assert unread.end == sentence.end
    assert sentence.category is not Category.SUPPORTIVE
