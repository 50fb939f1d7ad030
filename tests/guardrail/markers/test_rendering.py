"""Where ``[NA]`` and citations stand in a marked text."""

import pytest

from guardrail.core.types import Sentence, Span, SpanKind, Triple
from guardrail.markers.rendering import marked_text

LONDON = Triple(subject="Ada", subject_id="Q7259", property="place of birth", value="London")


def marked(text: str, lacking: list[str], supported: str = "") -> str:
    """Mark a text of one sentence; ``supported`` is a phrase that LONDON stands behind."""
    phrases = dict.fromkeys(lacking, SpanKind.NA)
    if supported:
        phrases[supported] = SpanKind.SUPPORTED
    spans = sorted((span(text, *item) for item in phrases.items()), key=lambda it: it.start)
    citations = (LONDON.citation,) if supported else ()
    return rendered(text, spans, citations=citations, na=bool(lacking))


def span(text: str, phrase: str, kind: SpanKind, triple: Triple = LONDON) -> Span:
    start = text.index(phrase)
    carried = triple if kind is SpanKind.SUPPORTED else None
    return Span(text=phrase, start=start, end=start + len(phrase), kind=kind, triple=carried)


def rendered(text: str, spans: list[Span], **fields: object) -> str:
    sentence = Sentence(text=text, start=0, end=len(text), spans=tuple(spans), **fields)
    return marked_text(text, [sentence])


@pytest.mark.parametrize(
    ("text", "lacking", "expected"),
    [
        ("She was born in Paris.", ["born", "Paris"], "She was born in Paris [NA]."),
        ("It opens at 9 a.m.", ["opens", "9 a.m"], "It opens at 9 a.m. [NA]"),
        ("She left the U.S.", ["left", "U.S"], "She left the U.S. [NA]"),
        ("She loved her opera.", ["loved", "opera"], "She loved her opera [NA]."),
        ("She loved opera and hated ballet.", ["loved", "opera", "hated", "ballet"],
         "She loved opera [NA] and hated ballet [NA]."),
        ("She loved opera, ballet, horses.", ["opera", "ballet", "horses"],
         "She loved opera [NA], ballet [NA], horses [NA]."),
        ("She was *born* in `Paris`.", ["born", "Paris"], "She was *born* in `Paris` [NA]."),
        ("She saw **Rome**; **Bern**.", ["Rome", "Bern"], "She saw **Rome** [NA]; **Bern** [NA]."),
        ("She met Irène Joliot-Curie.", ["Irène Joliot"], "She met Irène Joliot-Curie [NA]."),
        ("Now Rome-on-Sea.", ["Rome", "Sea"], "Now Rome-on-Sea [NA]."),
        ("It is Smith's house.", ["Smith"], "It is Smith's [NA] house."),
        ("| She | Bonn |", ["Bonn"], "| She | Bonn [NA] |"),
        ("In [Bonn](https://x.org/a).", ["Bonn"], "In [Bonn](https://x.org/a) [NA]."),
        ("She met Smith who left Leeds.", ["Smith", "Leeds"],
         "She met Smith [NA] who left Leeds [NA]."),
    ],
)  # fmt: skip
def test_phrases_of_one_claim_share_a_marker(text: str, lacking: list[str], expected: str) -> None:
    assert marked(text, lacking) == expected


def test_a_supported_phrase_parts_two_claims() -> None:
    text = "A doctor born in London in 1700."
    assert marked(text, ["doctor", "born", "1700"], "London") == (
        "A doctor born [NA] in London [Q7259, place of birth: London] in 1700 [NA]."
    )


def test_a_second_citation_of_a_phrase_follows_the_first() -> None:
    born = Triple(subject="Ada", subject_id="Q7259", property="birthplace", value="London")
    text = "Born in London to a banker."
    spans = [span(text, "London", SpanKind.SUPPORTED), span(text, "banker", SpanKind.NA)]
    assert rendered(text, spans, citations=(LONDON.citation, born.citation), na=True) == (
        "Born in London [Q7259, place of birth: London] [Q7259, birthplace: London] to "
        "a banker [NA]."
    )


@pytest.mark.parametrize(
    ("text", "phrase", "marked"),
    [
        ("Mary Shelley was a writer.", "Mary", "Mary Shelley [Q1, p: v] was a writer."),
        ("She met Mary W. Shelley there.", "Mary", "She met Mary W. Shelley [Q1, p: v] there."),
        ("The U.S. Navy paid.", "U.S", "The U.S. Navy [Q1, p: v] paid."),
        ("He lived in Rome and Paris.", "Rome", "He lived in Rome [Q1, p: v] and Paris."),
        ("He lived in Rome.", "Rome", "He lived in Rome [Q1, p: v]."),
    ],
)
def test_a_marker_splits_no_name(text, phrase, marked):
    triple = Triple(subject="S", subject_id="Q1", property="p", value="v")
    spans = [span(text, phrase, SpanKind.SUPPORTED, triple)]
    assert rendered(text, spans, citations=(triple.citation,)) == marked
