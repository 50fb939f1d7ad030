"""A clause that tells the opposite of a yes or no: denied, or its denial taken out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.tagging import parse
from guardrail.core.text.words import content_stems, property_words, tokenise
from guardrail.correction.edits import Edit
from guardrail.correction.wording import PART_OF_NOUN, with_article

if TYPE_CHECKING:
    from spacy.tokens import Token

    from guardrail.core.types import Finding
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["of_yes_no"]

NOUNS = frozenset({"NN", "NNS", "NNP", "NNPS"})
DESCRIBING = frozenset({"JJ", "JJR", "JJS", "VBG", "VBN"})
FINITE = frozenset({"MD", "VBZ", "VBP", "VBD"})
"""Tags of the Penn Treebank that a clause's first verb has."""

RELATIVE = frozenset({"WDT", "WP", "WP$", "WRB"})
"""Tags of what opens a clause that tells more of what was named."""

OPENER = re.compile(r"(?P<word>yes|no)(?=,|\s[-–—])", re.IGNORECASE)
"""A sentence's answer before it says what it answers."""


def of_yes_no(claim: Claim, finding: Finding, evidence: Premises) -> tuple[Edit, ...]:
    """The edits that turn a clause into its opposite; empty where none is sure.

    Args:
        claim: The sentence.
        finding: What ``yes_no`` found against it.
        evidence: What it is held against.
    """
    if not finding.statements:
        return ()
    number = finding.statements[0]
    known = evidence.indexed.statements[number].yes
    if known is None:
        return ()
    text = claim.stretch.text
    offset = claim.stretch.start
    [doc] = parse([text])
    opener = OPENER.match(text)
    floor = opener.end() if opener else 0
    clause: Sequence[Token] = [
        token
        for token in doc
        if max(floor, finding.start - offset) <= token.idx < finding.end - offset
    ]
    clause = _about(clause, evidence.indexed.statements[number])
    if not clause or any(token.tag_ in RELATIVE for token in doc[clause[0].i :]):
        return ()  # *has a car park, which is free*: what is said of it would hang on nothing
    edit = _told(text, clause, number) if known else _denied(text, clause, number)
    if edit is None:
        return ()
    if opener is None:
        return (edit,)
    word = ("yes" if known else "no") if opener["word"].islower() else ("Yes" if known else "No")
    if word == opener["word"]:
        return (edit,)
    return (Edit(opener.start("word"), opener.end("word"), word, number), edit)


def _about(clause: Sequence[Token], statement: Statement) -> Sequence[Token]:
    """The end of a clause that tells a property: from its last verb before the property's words."""
    assert statement.fact is not None
    wanted = content_stems(property_words(statement.fact.property))
    named = [
        place
        for place, token in enumerate(clause)
        if any(item.stem in wanted for item in tokenise(token.text))
    ]
    if not named:
        return ()
    verbs = [place for place, token in enumerate(clause[: named[-1]]) if token.tag_ in FINITE]
    return clause[verbs[-1] :] if verbs else ()


def _denied(text: str, clause: Sequence[Token], number: int) -> Edit | None:
    """A clause with its first verb denied: *is not*, *cannot*, *has no*, *does not support*."""
    place = next((n for n, token in enumerate(clause) if token.tag_ in FINITE), None)
    if place is None:
        return None
    verb = clause[place]
    start, end, word = verb.idx, verb.idx + len(verb), verb.text
    if verb.lower_ in lexicon_set("grammar", "be") or verb.tag_ == "MD":
        joined = f"{word}not" if verb.lower_ == "can" else f"{word} not"
        return Edit(start, end, joined, number)
    if verb.lower_ in lexicon_set("grammar", "have"):
        following = clause[place + 1] if place + 1 < len(clause) else None
        if following is None:
            return None
        if following.tag_ == "VBN" and following.dep_ not in PART_OF_NOUN:
            return Edit(start, end, f"{word} not", number)
        if following.lower_ in lexicon_set("function_words", "articles"):
            end = following.idx + len(following)
        elif following.tag_ not in NOUNS | DESCRIBING:
            return None  # *has two*, *has its own*, *has always been*: denied otherwise
        return Edit(start, end, f"{word} no", number)
    if verb.tag_ == "VBZ":
        return Edit(start, end, f"does not {_base(verb.lower_)}", number)
    return Edit(start, end, f"do not {word}", number) if verb.tag_ == "VBP" else None


def _told(text: str, clause: Sequence[Token], number: int) -> Edit | None:
    """A clause without its one denial."""
    denied = lexicon("grammar")["denied"]
    places = [
        place
        for place, token in enumerate(clause)
        if token.dep_ == "neg" or token.lower_ in ("no", *denied)
    ]
    if len(places) != 1:
        return None
    place = places[0]
    word = clause[place]
    if word.lower_ in denied:
        new = denied[word.lower_]
        new = new.capitalize() if word.text[0].isupper() else new
        return Edit(word.idx, word.idx + len(word), new, number)
    if not place:
        return None
    before, after = clause[place - 1], clause[place + 1 :]
    end = word.idx + len(word)
    if word.lower_ == "no":
        return _with_some(text, before, word, after, number)
    if before.lower_ in lexicon_set("grammar", "do"):
        if not after or after[0].tag_ != "VB":
            return None
        verb = after[0]
        told = verb.text if before.lower_ == "do" else _third(verb.text)
        return Edit(before.idx, verb.idx + len(verb), told, number)
    if before.tag_ not in FINITE or before.lower_ == "did":
        return None
    full = lexicon("grammar")["shortened"].get(before.lower_, before.lower_)
    full = full.capitalize() if before.text[0].isupper() else full
    return Edit(before.idx, end, full, number)


def _with_some(
    text: str, before: Token, word: Token, after: Sequence[Token], number: int
) -> Edit | None:
    """*has no lift* as *has a lift*, *has no lights* as *has lights*."""
    noun = None
    for token in after:
        if token.tag_ in NOUNS:
            noun = token
        elif noun is not None or not token.tag_.startswith(("JJ", "VBG", "VBN")):
            break
    if noun is None:
        return None
    uncounted = noun.lower_.endswith(tuple(lexicon("grammar")["uncounted_endings"]))
    several = noun.tag_ in ("NNS", "NNPS") and noun.lower_.endswith("s")
    if several or uncounted:
        return Edit(before.idx, word.idx + len(word), before.text, number)
    first = after[0].text
    _, article = with_article("a ", 2, first)
    return Edit(word.idx, word.idx + len(word), "an" if article.startswith("an ") else "a", number)


def _base(verb: str) -> str:
    """The base of a verb in the third person: *carries* → *carry*, *watches* → *watch*."""
    if verb == "does" or verb.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return verb[:-2]
    return f"{verb[:-3]}y" if verb.endswith("ies") and len(verb) > 4 else verb.removesuffix("s")


def _third(verb: str) -> str:
    """The third person of a verb: *carry* → *carries*, *have* → *has*."""
    if verb == "have":
        return "has"
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{verb}es"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"
