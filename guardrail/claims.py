"""Claims: which stretches of an answer state something that could be checked.

What is no claim passes every policy unjudged, so that only closed forms are taken for small talk:
whatever is said besides them is a claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from guardrail.syntax import CLAUSAL_SUBJECTS
from guardrail.text.sentences import Stretch
from guardrail.text.values import tokenise, word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Token as ParsedToken

__all__ = ["is_claim", "is_code"]

CHAT = r"""
    (?:hi|hello|hey|greetings)(?:\ (?:there|again|everyone|everybody|all|friend)
      |(?:\ (?-i:[A-Z])[\w'-]+){1,2})?
    | good\ (?:morning|afternoon|evening|day|night|luck)
    | (?:good)?bye(?:\ (?:for\ now|bye))? | take\ care | cheers | welcome(?:\ back)?
    | (?:thanks|thank\ you)(?:\ (?:again|a\ lot|(?:so|very)\ much))?
      (?:\ for\ (?:asking|sharing|waiting|reaching\ out|(?:the|your)\ (?:question|patience|interest
      |time|message|clarification|feedback|help)))?
    | sure(?:\ thing)? | certainly | of\ course | absolutely | definitely | okay | ok | alright
    | yes | yeah | yep | no | nope | please | great | perfect | got\ it | understood | indeed
    | (?:that\ is\ |that's\ )?(?:an?\ )?(?:great|good|excellent|interesting|fair)
      \ (?:question|point)
    | no\ (?:problem|worries) | my\ pleasure | you(?:'re|\ are)\ (?:very\ |most\ )?welcome
    | (?:i(?:'m|\ am)\ )?(?:so\ |very\ )?sorry(?:\ (?:about|for)\ (?:that|this|the\ (?:confusion
      |delay|inconvenience|mistake|misunderstanding)))?
    | (?:(?:my|i)\ )?apolog(?:ies|ise|ize)(?:\ for\ the\ (?:confusion|delay|inconvenience|mistake
      |misunderstanding))?
    | (?:i(?:'m|\ am|'d\ be|\ would\ be)\ )?(?:always\ )?(?:glad|happy|pleased|delighted|here)
      \ to\ (?:help|assist)(?:\ you)?(?:\ (?:today|further|out|with\ (?:this|that)))?
    | i\ can\ (?:help|assist)(?:\ you)?(?:\ with\ (?:this|that))?
    | if\ you\ have\ (?:any\ )?(?:more|other|further)\ questions
    | (?:i\ )?hope\ (?:this|that|it)\ (?:helps|is\ helpful|answers\ your\ question)
      (?:\ (?:you|a\ bit))?
    | nice\ to\ meet\ you | have\ a\ (?:nice|great|good|lovely)\ day
"""
GREETING = re.compile(
    rf"[\W_]*(?:and\ )?(?:{CHAT})(?=\s*(?:[.,;:!?…–—]|[-*_\"'”)]+(?:\s|$)|$))",
    re.IGNORECASE | re.VERBOSE,
)
"""A polite form that ends where the text or its clause ends: *no* before a noun is none."""

NOTICE = re.compile(
    r"[\W_]*(?:please )?(?:note|be aware|keep in mind|remember)\b(?: that)?[\s,:]+|"
    r"[\W_]*please (?=[a-z])",
    re.IGNORECASE,
)
"""Words before a statement or an instruction, which is judged without them."""

OPENING = re.compile(
    r"here (?:is|are)\b|here's\b|(?:let|tell|ask) me\b|i hope\b|feel free\b|is there anything\b|"
    r"below (?:is|are)\b|the following(?: (?:is|are))?\b|as an ai\b|specify\b|clarify\b|"
    r"rephrase\b|try again\b|wait\b|ask (?:if|any|again)\b|(?:consult|contact) (?:an?|your)\b|"
    r"(?:provide|share|give)(?: me| us)?(?: with)?(?: some| a few| any)? "
    r"(?:more|further|additional) (?:details?|information|context|specifics)\b",
    re.IGNORECASE,
)
"""Opens a sentence without stating anything; what follows it may still be a statement."""

PRESENTED = re.compile(
    r"[\W_]*(?:here (?:is|are)|here's)\s+(?-i:(?:the\s+)?[A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*),"
    r"\s+(?:an?|the)\s",
    re.IGNORECASE,
)
"""Presents something by its name and tells what it is: *Here is the Eagle, a pub near ...*."""

IGNORANCE = re.compile(
    r"\b(?:i|we)(?:'m| am| are)? (?:do(?:n't| not) (?:know|have)|(?:can(?:not|'t)"
    r"|could not|couldn't|am unable to|was unable to|unable to) (?:find|answer|tell|provide|"
    r"verify|confirm|help|determine)|not (?:sure|certain|able)|sorry)"
    r"|\b(?:no|not enough|insufficient) (?:information|data|evidence|knowledge)\b.{0,60}"
    r"(?:available|provided|given|found|exist)"
    r"|\b(?:is|are) (?:unknown|not known|unclear)\b(?! (?:to|for|as)\b)",
    re.IGNORECASE,
)
"""Says that something is not known; what its clause speaks of is not stated."""

TURN = re.compile(r";|:(?=\s)|,?\s(?:but|however|although|though|yet|because)\s|,\s", re.IGNORECASE)
"""Where a clause may end that says what is not known, and a statement begin."""

INTERROGATIVE = re.compile(
    r"[\W_]*(?:who|whom|whose|what|when|where|why|how|which|is|are|was|were|do|does|did|can|could|"
    r"would|will|should|has|have|had|may|shall|am)\b",
    re.IGNORECASE,
)
LEADING = re.compile(
    r"[\W_]*(?:(?:did|do) you know (?:that|how|when|where)?\b|have you heard\b"
    r"|(?:is|was|are|were|did|does|has|have)(?:n't\b|\s(?:\S+\s){1,4}?(?<!or )not\b))",
    re.IGNORECASE,
)
"""Questions that state what they seem to ask."""

HARD_WORD = re.compile(r"\d|(?<=[\w,;:’'] )[A-Z][\w’'-]+")
"""A digit, or a capitalised word that does not open the text."""

FINITE = re.compile(
    r"\b(?:is|was|are|were|has|had|have|did|does|became|\w{2,}ed|born|wrote|won|made|led|held)\b",
    re.IGNORECASE,
)

FINITE_TAGS = frozenset({"VBD", "VBZ", "VBP", "MD"})
"""Tags of verbs that may make a statement."""

TALKERS = word_set("i we you")
"""Subjects of sentences about the conversation."""

ASKING = frozenset({"WP", "WP$", "WDT", "WRB"})
"""Tags of words that make a clause a question or a description."""

OPEN_MARKS = word_set("if whether unless")
"""What leaves its clause open."""

PLAIN_WORDS = re.compile(r"\w[\w'’-]*+(?:,? \w[\w'’-]*+){3,}")
"""Four or more words with nothing but spaces and commas between them."""


def is_claim(doc: Doc, stretch: Stretch) -> bool:
    """Whether a stretch of an answer states something that could be checked.

    Greetings, questions and "I don't know" state nothing; instructions do. A greeting or
    hedge exempts its own clause only: "Sure, she died in 1851" and "I am not sure why, but she
    died in 1851" state when she died, and so does "She died in 1851, right?".

    Args:
        doc: The parsed text.
        stretch: The sentence, list item, heading or table row.
    """
    text = stretch.text.replace("’", "'")  # of one length: offsets stay
    start = _past_greetings(text)
    rest = text[start:]
    words = tokenise(rest)
    if not words or (len(words) <= 2 and rest.endswith(":")):
        return False
    notice = NOTICE.match(rest)
    if notice is not None:
        start += notice.end()
        rest = text[start:]
        if not tokenise(rest):
            return False
    if rest.rstrip("\"')*_ ").endswith("?") and INTERROGATIVE.match(rest):
        return LEADING.match(rest) is not None
    opening = OPENING.match(rest)
    if (opening is None or PRESENTED.match(rest)) and IGNORANCE.search(rest) is None:
        return True
    first = start + (opening.end() if opening else 0)
    return any(
        IGNORANCE.search(text[begin:end]) is None
        and (
            _names_a_fact(text[begin:end], opens=begin == first)
            or _states(doc, stretch.start + begin, stretch.start + end)
        )
        for begin, end in _clauses(text, first)
    )


def is_code(stretch: str) -> bool:
    """Whether what stands between code fences is code, no sentence put there.

    A sentence has four plain words in a row, a verb, and something that could be checked.
    """
    return not any(
        FINITE.search(run.group()) and HARD_WORD.search(run.group())
        for run in PLAIN_WORDS.finditer(stretch)
    )


def _past_greetings(text: str) -> int:
    """Where a text goes on after its greetings and polite forms, and the signs behind them."""
    start = 0
    while (greeting := GREETING.match(text, start)) is not None and greeting.end() > start:
        start = greeting.end()
    while start and start < len(text) and not text[start].isalnum() and text[start] != "?":
        start += 1
    return start


def _clauses(text: str, first: int) -> Iterable[tuple[int, int]]:
    begin = first
    for turn in TURN.finditer(text, first):
        yield begin, turn.start()
        begin = turn.end()
    yield begin, len(text)


def _names_a_fact(clause: str, *, opens: bool) -> bool:
    """Whether a clause has a verb, and a figure or a name; a capital may open the sentence."""
    return (
        HARD_WORD.search(clause if opens else f" {clause}") is not None
        and FINITE.search(clause) is not None
    )


def _states(doc: Doc, start: int, end: int) -> bool:
    """Whether a finite verb in a part of a text has a subject other than who talks there."""
    span = doc.char_span(start, end, alignment_mode="contract")
    return span is not None and any(
        one.dep_ in CLAUSAL_SUBJECTS
        and one.lower_ not in TALKERS
        and one.tag_ not in ASKING
        and start <= one.head.idx < end
        and _finite(one.head)
        and not _left_open(one.head)
        for one in span
    )


def _finite(verb: ParsedToken) -> bool:
    return verb.tag_ in FINITE_TAGS or any(
        child.dep_ in ("aux", "auxpass") and child.tag_ in FINITE_TAGS for child in verb.children
    )


def _left_open(verb: ParsedToken) -> bool:
    """Whether a clause asks, describes, hopes or sets a condition instead of stating."""
    if verb.dep_ == "conj" and verb.head.pos_ in ("VERB", "AUX"):
        return _left_open(verb.head)
    if verb.dep_ == "ccomp" and verb.head.lower_ == "hope":
        return True
    return any(
        child.lower_ in OPEN_MARKS or any(one.tag_ in ASKING for one in (child, *_specified(child)))
        for child in verb.lefts
    )


def _specified(noun: ParsedToken) -> Iterable[ParsedToken]:
    """What stands before a noun: the *which* of *which drug*."""
    return noun.lefts if noun.pos_ in ("NOUN", "PROPN") else ()
