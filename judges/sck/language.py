"""Reads tenses, persons and names of texts, and the names that an answer should mention."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.errors import ConfigError, JudgeError
from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.tagging import load_english, run_pipeline
from guardrail.core.text.words import in_english
from guardrail.core.types import Evidence, LinkedEntity, Mention, Passage, Score
from judges.sck.report import ContentReport, KeyEntity

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token


class Reading(NamedTuple):
    """Counts over one text.

    Attributes:
        words: Words of the whole text, without punctuation.
        tenses: Finite verbs of the opening by ``present``, ``past`` and ``future``; imperatives
            are present.
        persons: Personal pronouns of the opening by ``1st``, ``2nd`` and ``3rd``; imperatives
            are 2nd.
        names: Named entities.
        english: False for a text that is long enough to judge and does not read like English.
    """

    words: int
    tenses: Mapping[str, int]
    persons: Mapping[str, int]
    names: tuple[Mention, ...]
    english: bool


def read(texts: Sequence[str]) -> list[Reading]:
    """Read n texts (plain or Markdown) with spaCy's small English tagger and entity recogniser.

    Names are recognised in the first 20,000 characters.

    Raises:
        JudgeError: The English pipeline is not installed.
    """
    try:
        pipeline = load_english("parser", "lemmatizer", "attribute_ruler")
    except ConfigError as error:
        raise JudgeError(str(error)) from None
    docs = run_pipeline(pipeline, [text[:20_000] for text in texts])
    return [reading_of(text, doc) for text, doc in zip(texts, docs, strict=True)]


def reading_of(text: str, doc: Doc) -> Reading:
    """Read a text that an English pipeline has parsed, or whose beginning it has parsed."""
    tenses: Counter[str] = Counter()
    persons: Counter[str] = Counter()
    for token in doc:
        if token.idx >= 1_000:  # the shares of tenses and persons hardly change beyond
            break
        if _imperative(token):
            tenses["present"] += 1
            persons["2nd"] += 1
        elif token.tag_ == "VBD":
            tenses["past"] += 1
        elif token.tag_ in ("VBZ", "VBP", "MD"):
            future = token.tag_ == "MD" and token.lower_ in _words("future")
            tenses["future" if future else "present"] += 1
        elif token.tag_ in ("PRP", "PRP$"):
            first, second = _words("first_persons"), _words("second_persons")
            low = token.lower_
            persons["1st" if low in first else "2nd" if low in second else "3rd"] += 1
    never_nodes = ("CARDINAL", "ORDINAL", "PERCENT", "QUANTITY", "TIME")
    names = tuple(
        Mention(text=span.text, start=span.start_char, end=span.end_char, ner=span.label_)
        for span in doc.ents
        if span.label_ not in never_nodes and any(letter.isalpha() for letter in span.text)
    )
    words = len(re.findall(r"[^\W_]+(?:['’.-][^\W_]+)*", text))
    return Reading(words, dict(tenses), dict(persons), names, in_english(text))


def _words(name: str) -> frozenset[str]:
    return lexicon_set("function_words", name)


def _imperative(token: Token) -> bool:
    """True for a bare verb at the start of a sentence or list item."""
    if token.tag_ != "VB":
        return False
    before = token.nbor(-1) if token.i else None
    while before is not None and (before.is_punct or before.like_num) and "\n" not in before.text:
        if before.text in ".!?:":
            return True
        before = before.nbor(-1) if before.i else None
    return before is None or "\n" in before.text


# --- Names and content (SCK 2.3) ----------------------------------------------------------------


class Name(NamedTuple):
    """An entity and the names that count as a mention of it.

    Attributes:
        text: The name to show.
        forms: Folded names.
        entity_id: The linked node, where there is one.
    """

    text: str
    forms: frozenset[str]
    entity_id: str | None = None

    def same_as(self, other: Name) -> bool:
        """True if a form of one contains a form of the other."""
        return any(occurs(a, b) or occurs(b, a) for a in self.forms for b in other.forms)


def fold(text: str) -> str:
    """Fold case and white space; drop a leading article and a trailing ``'s``."""
    return _edges().sub("", re.sub(r"\s+", " ", text.strip()).casefold())


@cache
def _edges() -> re.Pattern[str]:
    articles = "|".join(lexicon("function_words")["articles"])
    return re.compile(rf"^(?:{articles})\s+|[’']s$", re.IGNORECASE)


def occurs(form: str, folded: str) -> bool:
    """True if a folded text contains a folded name at word boundaries."""
    start = folded.find(form)
    while start >= 0:
        end = start + len(form)
        before = start == 0 or not folded[start - 1].isalnum()
        if before and (end == len(folded) or not folded[end].isalnum()):
            return True
        start = folded.find(form, start + 1)
    return False


def names_in(
    text: str, mentions: Iterable[Mention], entities: Iterable[LinkedEntity]
) -> list[Name]:
    """The distinct entities of a text: linked entities that it mentions, then other names.

    Args:
        text: The text.
        mentions: Names that a tagger found in it.
        entities: Entities linked in it or elsewhere.
    """
    folded = fold(text)
    found: dict[str, Name] = {}
    taken: set[str] = set()
    for linked in entities:
        entity = linked.entity
        surface = fold(linked.mention.text)
        if not surface or not occurs(surface, folded):
            continue
        forms = frozenset(filter(None, map(fold, (surface, entity.label, *entity.aliases))))
        found.setdefault(entity.id, Name(linked.mention.text, forms, entity.id))
        taken |= forms
    for mention in mentions:
        form = fold(mention.text)
        if form and form not in taken:
            taken.add(form)
            found[form] = Name(mention.text, frozenset({form}))
    return list(found.values())


def key_names(
    question: str,
    mentions: Iterable[Mention],
    entities: Iterable[LinkedEntity],
    evidence: Iterable[Evidence],
) -> tuple[list[Name], str]:
    """The entities that an answer to a question should mention, from question and evidence.

    These are the names of the question: linked ones, those of the tagger, and every subject of
    the evidence that the question mentions, so that products or rows without a graph count too.
    A question without any name takes the subjects of the evidence, if they are at most ten.

    Returns:
        The names, and ``question`` or ``evidence`` as their source.
    """
    subjects = {name: Name(text, frozenset({name})) for name, text in _subjects(evidence)}
    names = names_in(question, mentions, entities)
    taken = {form for name in names for form in name.forms}
    folded = fold(question)
    found = [name for form, name in subjects.items() if form not in taken and occurs(form, folded)]
    # A tagger's name within or around a subject of the evidence is the same entity.
    names = [
        name for name in names if name.entity_id is not None or not any(map(name.same_as, found))
    ]
    if names or found or not 1 <= len(subjects) <= 10:
        return [*names, *found], "question"
    return list(subjects.values()), "evidence"


def _subjects(evidence: Iterable[Evidence]) -> Iterator[tuple[str, str]]:
    """Subjects of triples and titles of passages: folded, and as first written."""
    seen: set[str] = set()
    for item in evidence:
        subject = item.title if isinstance(item, Passage) else getattr(item, "subject", None)
        if subject and (form := fold(subject)) and form not in seen:
            seen.add(form)
            yield form, subject


def score_content(answer: str, key: Sequence[Name], *, source: str) -> ContentReport:
    """The share of key entities that the answer mentions under any of their names (eq. 4).

    Args:
        answer: The answer.
        key: The key entities.
        source: ``reference``, ``question`` or ``evidence``.
    """
    folded = fold(answer)
    entities = tuple(
        KeyEntity(
            text=name.text,
            entity_id=name.entity_id,
            found=any(occurs(form, folded) for form in name.forms),
        )
        for name in key
    )
    score = Score(reason=f"the {source} names no entity")
    if entities:
        found = sum(entity.found for entity in entities)
        counted = f"{found} of {len(entities)} key entities of the {source}"
        score = Score(value=found / len(entities), evidence=(counted,))
    return ContentReport(score=score, source=source, entities=entities)
