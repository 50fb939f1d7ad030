"""Mentions: the spans of a text that may name an entity (KaLMA 3.1).

A small tagger misses names and mislabels others, so its entities are joined with the label index
of the graph where there is one, and with runs of capitalised words. The vocabulary profile of a
graph (``[ner]`` in its TOML) lists the classes that a type of the tagger can name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.tagging import load_english
from guardrail.core.types import Entity, Mention

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc


class ListedName(NamedTuple):
    """A name from a list whose members share a part: *Elizabeth* for *Elizabeth Blackwell*."""

    mention: Mention
    full: str


def fold(text: str) -> str:
    """Fold a name for comparison: no case, no diacritics, single spaces.

    >>> fold("  Éamon de  Valera ")
    'eamon de valera'
    """
    return " ".join(_without_marks(text).casefold().split())


def tagged_mentions(doc: Doc) -> list[Mention]:
    """The names in a parsed text, without articles, quotes and possessive endings, in order.

    Of OntoNotes' types these are the ones that name things; DATE, CARDINAL and so on do not.
    """
    text = doc.text  # joined anew from its tokens each time
    naming = (
        "PERSON", "NORP", "FAC", "ORG", "GPE", "LOC", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW",
        "LANGUAGE",
    )  # fmt: skip
    trimmed = (
        _trimmed(text, entity.start_char, entity.end_char, entity.label_)
        for entity in doc.ents
        if entity.label_ in naming
    )
    return [mention for mention in trimmed if mention is not None]


def capitalised_spans(text: str) -> list[Mention]:
    """Find the runs of capitalised words, joined by name particles; linear in the text.

    Runs of more than ten words are headlines.

    >>> [span.text for span in capitalised_spans("Who taught Leonardo da Vinci's pupil?")]
    ['Leonardo da Vinci']
    """
    found: list[Mention] = []
    run: list[tuple[int, int]] = []
    closed = False
    particles, openers = lexicon_set("names", "particles"), lexicon_set("names", "openers")

    def close() -> None:
        while run and text[run[-1][0] : run[-1][1]] in particles:
            run.pop()
        if 0 < len(run) <= 10:
            start, end = run[0][0], run[-1][1]
            found.append(Mention(text=text[start:end], start=start, end=end))
        run.clear()

    for start, end, possessive in _tokens(text):
        word = text[start:end]
        if run and (closed or not re.fullmatch(r"[^\S\n]+", text[run[-1][1] : start])):
            close()
        closed = possessive
        # "al-Askari" goes on with a name though it begins small.
        capital = word[0].isupper() or (bool(run) and word.rpartition("-")[2][:1].isupper())
        if not capital:
            if run and word in particles:
                run.append((start, end))
            else:
                close()
        elif run or word.lower() not in openers:
            run.append((start, end))
    close()
    return found


def join_mentions(
    text: str, *, spotted: Sequence[Mention], tagged: Sequence[Mention], spans: Sequence[Mention]
) -> list[Mention]:
    """Join what the label index, the tagger and the capitals found in one text.

    The label index is trusted first, since it finds names that the graph really has; a tagger's
    entity over the same words lends it its type. Of the rest the longer stretch wins.
    """
    kept: list[Mention] = []
    taken = bytearray(len(text) + 1)
    types = {}
    for mention in tagged:
        for position in range(mention.start, mention.end):
            types[position] = mention.ner
    rest = sorted([*tagged, *spans], key=lambda m: (m.start - m.end, m.start))
    for mention in [*(m for m in spotted if _names(m.text)), *rest]:
        if any(taken[mention.start : mention.end]):
            continue
        taken[mention.start : mention.end] = b"\x01" * (mention.end - mention.start)
        if mention.ner is None:
            # The type of the last word: "Ursula von der" is tagged PERSON and "Leyen" GPE.
            ner = types.get(mention.start) or types.get(mention.end - 1)
            mention = mention.model_copy(update={"ner": ner})
        kept.append(mention)
    return sorted(kept, key=lambda mention: mention.start)


def name_forms(name: str) -> list[str]:
    """Write a mention in the forms a label may have, the likeliest first.

    >>> name_forms("Emperor Claudius")
    ['Emperor Claudius', 'Claudius']
    """
    forms = [name]
    words = name.split()
    titles = lexicon_set("names", "titles")
    while len(words) > 1 and words[0].lower().rstrip(".") in titles:
        words = words[1:]
        forms.append(" ".join(words))
    return list(dict.fromkeys([*forms, forms[-1].replace("’", "'"), _without_marks(forms[-1])]))


def bare_name(name: str) -> str:
    """The name without titles before it."""
    return min(name_forms(name), key=len)


def completions(mention: Mention, words: Sequence[str]) -> list[ListedName]:
    """A mention with each ending of a longer name, shortest first."""
    endings = (words[cut:] for cut in range(len(words) - 1, 0, -1))
    return [ListedName(mention, " ".join([mention.text, *ending])) for ending in endings]


def listed_names(text: str, spans: Sequence[Mention]) -> list[ListedName]:
    """Complete the members of lists that share a part of the name.

    "Elizabeth and Emily Blackwell" gives ``Elizabeth Blackwell``; "the Barron brothers, Kenny and
    Bill" is left to the surname. Each shorter member is tried with every ending of the longer one
    that the list closes with, shortest ending first.
    """
    found: list[ListedName] = []
    group: list[Mention] = []
    for mention in spans:
        if group and not _list_join().fullmatch(text, group[-1].end, mention.start):
            group = []
        words = mention.text.split()
        if len(words) > 1:
            for earlier in group:
                found += completions(earlier, words)
            group = []
        elif len(words) == 1:
            group.append(mention)
    return found


def load_tagger() -> Language:
    """Load the first installed pipeline with its entity recogniser only."""
    return load_english("tagger", "parser", "attribute_ruler", "lemmatizer")


def taggable(text: str) -> str:
    """The first 100,000 characters of a text, which take some 3 s on one core.

    Runs without white space, for which spaCy's tokenizer takes quadratic time, are blanked out.
    """
    return re.sub(r"\S{200,}", lambda run: " " * len(run.group()), text[:100_000])


def classes_of(graph: object) -> Mapping[str, Sequence[str]]:
    """Class ids by entity type, from the graph's profile; empty without one."""
    table: Mapping[str, Sequence[str]] = getattr(getattr(graph, "profile", None), "ner", {})
    return table


def compatible(
    candidates: Sequence[Entity], ner: str | None, classes: Mapping[str, Sequence[str]]
) -> list[Entity]:
    """Keep the candidates whose class fits the tagger's type (KaLMA 3.1).

    A small tagger takes persons for organisations or places, so the filter only chooses: where
    no candidate's class fits, or the type or the classes are unknown, all candidates stay.
    """
    wanted = set(classes.get(ner or "", ()))
    return [entity for entity in candidates if wanted & set(entity.types)] or list(candidates)


def persons(candidates: Sequence[Entity], classes: Mapping[str, Sequence[str]]) -> list[Entity]:
    """Keep the persons; all candidates where the vocabulary does not say what a person is."""
    wanted = set(classes.get("PERSON", ()))
    return [entity for entity in candidates if not wanted or wanted & set(entity.types)]


@cache
def _list_join() -> re.Pattern[str]:
    """What stands between two members of a list."""
    words = "|".join(lexicon("names")["joins"])
    return re.compile(rf"\s*(?:,(?:\s*(?:{words}))?|{words})\s+", re.IGNORECASE)


def _tokens(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield start, end and whether a possessive ending or a full stop was cut off."""
    for found in re.finditer(r"\w[\w.'’\-]*", text):
        word = found.group()
        bare = re.sub(r"(?<=\w\w)\.$", "", word.rstrip("-'’") or word[0])
        bare = re.sub(r"['’][sS]?$", "", bare)
        yield found.start(), found.start() + len(bare), len(bare) < len(word)


def _trimmed(text: str, start: int, end: int, ner: str) -> Mention | None:
    while start < end and not text[start].isalnum():
        start += 1
    if text[start:end][:4].lower() == "the ":
        start += 4
    possessive = re.search(r"['’][sS]?\s*$", text[start:end])
    if possessive is not None:
        end = start + possessive.start()
    while end > start and not (text[end - 1].isalnum() or text[end - 1] in ".)"):
        end -= 1
    if start >= end:
        return None
    return Mention(text=text[start:end], start=start, end=end, ner=ner)


def _names(surface: str) -> bool:
    """Tell a name from a common word that happens to be a label: one word in small letters."""
    opener = surface.lower() in lexicon_set("names", "openers")
    return not opener and not re.fullmatch(r"[a-z]+(?:['’-]+[a-z]+)*", surface)


def _without_marks(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if not unicodedata.combining(char))
