"""Claims: the sentences of an answer with their context, and the subjects that they are about."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import Literal, NamedTuple

from guardrail.core.text.lexicon import lexicon, lexicon_set
from guardrail.core.text.names import find_names, label_in, part_of_name_in
from guardrail.core.text.quantities import Quantity
from guardrail.core.text.sentences import (
    MEMBER,
    Place,
    Stretch,
    cells_of,
    code_blocks,
    lined,
    split_sentences,
    without_links,
)
from guardrail.core.text.tagging import parse
from guardrail.core.text.values import TypedValue, find_values
from guardrail.core.text.words import (
    Span,
    Token,
    content_stems,
    fold,
    hides_letters,
    plain,
    property_words,
    tokenise,
    within_another,
    without_marks,
)
from guardrail.core.types import Sentence, Strictness, VerdictThresholds
from guardrail.evidence.prepared import PreparedEvidence
from guardrail.evidence.statements import Statement
from guardrail.markers.grammar import Marker, ParsedText, without_references, without_ruins
from judges.letters import plain_letters
from judges.settings import Account

BEFORE_CHARS = 400
"""Characters of earlier sentences that are read with a sentence: pronouns point no further."""
PLAIN_WORDS = re.compile(r"(?<![\w'’-])['’-]*+\w[\w'’-]*+(?:,? \w[\w'’-]*+){3,}")
"""Four or more words with only spaces and commas between them, as in prose but not in code."""


class GroundingRequest(NamedTuple):
    """One answer to ground.

    Attributes:
        question: The question it answers.
        answer: The answer with the markers that stood in it, parsed.
        evidence: What the answer is held against.
        asked: Label of the entity that the question is about, where it is known.
        since: Offset in the clean answer; sentences that end before it are read as context alone.
        thresholds: How sure the judge must be.
        most: Most sentences that are judged; None for all.
        correct: True to propose corrections of contradicted sentences.
        known: Claims of earlier states of an answer that grows, added to: what was judged of them
            stands while context, evidence and thresholds are the same.
        account: Pays for the second judge's calls; None for one of its own.
    """

    question: str
    answer: ParsedText
    evidence: PreparedEvidence
    asked: str | None = None
    since: int = 0
    thresholds: VerdictThresholds = Strictness.BALANCED.thresholds
    most: int | None = None
    correct: bool = False
    known: dict[object, Claim] | None = None
    account: Account | None = None


@dataclass(eq=False)
class Claim:
    """A sentence of an answer on its way to a verdict.

    Attributes:
        stretch: The sentence in the clean answer; offsets index that.
        text: What is judged: the same on one line, in plain letters, without references, broken
            markers and marks of form, which are blank.
        question: The question.
        before: The sentences shortly before it.
        prose: Whether it may assert something, which the judge then says: all but the head of a
            table that names its columns, a bare heading or label, and code without plain words.
        head: True for the head of a table that contains an amount, and for an open question: a
            contradiction counts, missing support does not.
        evidence: What the answer is held against.
        behind: The sentence as those behind it read it before them.
        markers: Those that the model wrote into the sentence.
        answers: The bare yes or no in whose place this sentence, the proposition of the question,
            is judged; None for a sentence of the answer itself.
        denied: True if the bare answer denies the proposition.
        columns: Of a table's row the heads of its columns.
        judged: What was made of it, by the subjects and thresholds that it was judged with.
    """

    stretch: Stretch
    text: str
    question: str
    before: str
    prose: bool
    head: bool
    evidence: PreparedEvidence
    behind: str = ""
    markers: tuple[Marker, ...] = ()
    answers: Stretch | None = None
    denied: bool = False
    columns: tuple[str, ...] = ()
    judged: dict[tuple[frozenset[str], VerdictThresholds], Sentence] = field(default_factory=dict)

    def at(self, start: int, markers: tuple[Marker, ...]) -> Claim:
        """The same claim where the answer has it, with its markers and all that was found in it."""
        by, moved = start - self.stretch.start, copy(self)
        moved.markers = markers
        moved.stretch = Stretch(self.stretch.text, start, self.stretch.end + by)
        moved.answers = self.answers and Stretch(self.answers.text, start, self.answers.end + by)
        return moved

    @property
    def place(self) -> Stretch:
        """Its place in the clean answer."""
        return self.answers or self.stretch

    @property
    def is_turned(self) -> bool:
        """True if a question mark, ❌ at either end or ~~deletion~~ turns what its words state."""
        ends = "".join(re.findall(r"^[^\w|]+|(?<=\w)[^\w|:=]+$", self.text))
        turned = re.search(r"~~|<(?:del|s|strike)\b|\?\s*$", self.text) is not None
        return turned or not lexicon_set("function_words", "no").isdisjoint(ends)

    @cached_property
    def parts(self) -> list[tuple[str, str, Span]]:
        """Cells of a row whose subject comes first, or members of a flat JSON object."""
        written = re.finditer(r"(?:^|\|) *([^|]+)", self.text)
        cells = [(item[1].rstrip(), item.start(1)) for item in written]
        label = cells[0][0] if cells else ""
        named, words = self.named_in(label), {*fold(" ".join(self.columns[1:])).split()}
        if cells and len(cells) == len(self.columns):
            if not named and any(self.named_in(cell) for cell, _ in cells[1:]):
                return []
            heads = [f"{label} - {item.lower() if named else item}" for item in self.columns[1:]]
            if len(cells) == 2 and not (named or words & lexicon_set("grammar", "denying")):
                heads = [label]
            found = list(zip(heads, cells[1:], strict=True))
        else:
            flat = self.text.count("{") <= 1 and "[" not in self.text
            members = MEMBER.finditer(self.text) if flat else ()
            found = [(property_words(m[1]), (m[2], m.start(2))) for m in members]
        return [
            (f"{name}: ", value.strip('"'), (start, start + len(value)))
            for name, (value, start) in found
            if value
        ]

    def part(self, text: str) -> Claim:
        """A part of it as a claim of its own."""
        return replace(self, stretch=Stretch(text, 0, len(text)), text=text, columns=())

    def named_in(self, text: str) -> frozenset[str]:
        """Which subjects of the evidence a part of it names."""
        return named_in(text, tokenise(text), self.evidence)

    @property
    def is_data(self) -> bool:
        """True for a table's row, a JSON object and a line of settings, which surely claim."""
        return bool(self.columns or MEMBER.search(self.text) or SETTING.match(self.stretch.text))

    @cached_property
    def plain(self) -> str:
        """``text`` in plain characters; offsets are the same."""
        return plain(self.text)

    @cached_property
    def asked(self) -> str:
        """The question, without one that contains the whole sentence: a question is no evidence."""
        content = self.stems - lexicon_set("function_words", "yes")
        whole = content and content <= content_stems(plain(self.question))
        return "" if whole else self.question.strip()

    @cached_property
    def context(self) -> str:
        """The question and the sentences before, as the judge reads them."""
        return " ".join(filter(None, (self.asked, self.before)))

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The words of ``text``; offsets are the sentence's own."""
        return tokenise(self.plain)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of its content words."""
        return content_stems(self.plain)

    @cached_property
    def values(self) -> list[TypedValue]:
        """Its typed values; the *2* inside of the name *Alba 2* is none.

        Offsets are the sentence's own.
        """
        found = find_values(self.text)
        return [item for item in found if not within_another((item.start, item.end), self.mentions)]

    @cached_property
    def asked_values(self) -> list[TypedValue]:
        """Typed values of the question."""
        return find_values(self.asked)

    @cached_property
    def labels(self) -> list[str]:
        """The subjects of the evidence that it may name in full."""
        return self.evidence.labels_in(self.tokens)

    @cached_property
    def mentions(self) -> list[Span]:
        """Where it writes out the name of a subject of the evidence; offsets are its own."""
        others = self.evidence.names
        names = [name for label in self.labels for name in (label, *others.get(label, ()))]
        return [span for name in names for span in self.spans_of(name)]

    @cached_property
    def spans_of(self) -> Callable[[str], list[Span]]:
        """Where it has a name or another value, in any form; offsets are its own."""
        return cache(partial(label_in, self.plain, self.tokens))

    @cached_property
    def names(self) -> list[Span]:
        """Its names; offsets are the sentence's own."""
        return find_names(self.plain)

    @cached_property
    def about(self) -> frozenset[str]:
        """Whom it names itself, without those that a pronoun means."""
        return _about(self.plain, self.tokens, self.evidence)

    @cached_property
    def asked_about(self) -> frozenset[str]:
        """Whom the question names."""
        return _about(self.question, tokenise(plain(self.question)), self.evidence)

    @cached_property
    def where(self) -> Callable[[Statement], list[Span]]:
        """Where it has the value of a triple, or a place that contains it; offsets are its own."""
        return cache(lambda statement: statement.stands_in(self.plain, self.tokens, self.values))


def claims_of(request: GroundingRequest) -> list[Claim]:
    """The sentences of one answer, in order."""
    evidence, text = request.evidence, request.answer.clean
    known = {} if request.known is None else request.known
    blocks = code_blocks(text)
    claims: list[Claim] = []
    earlier: list[str] = []
    columns: tuple[str, ...] = ()
    for stretch, place in lined(text):
        before, marked = _last(earlier), bool(request.answer.markers)
        if place.role == "head":
            columns = tuple(cells_of(text[slice(*place.line)]))
        elif not place.is_row:
            columns = ()
        markers = request.answer.within(stretch.start, stretch.end) if marked else ()
        cited = tuple([(item.citations, item.sources) for item in markers]) if marked else ()
        code = bool(blocks) and _is_within(blocks, stretch.start)
        key = evidence, request.question, before, stretch.text, place[1:], code, cited, columns
        claim = known.get(key) or _read(request, stretch.text, place, earlier, code=code)
        claim.columns = columns if place.role != "head" else ()
        if (claim.stretch.start, claim.markers) != (stretch.start, markers):
            claim = claim.at(stretch.start, markers)
        known[key] = claim
        claims.append(claim)
        earlier.append(claim.behind)
    return claims


def _read(
    request: GroundingRequest, text: str, place: Place, earlier: Sequence[str], *, code: bool
) -> Claim:
    """Read a sentence as a claim, as if it began the answer."""
    evidence, question, before = request.evidence, request.question, _last(earlier)
    read = without_references(without_ruins(text, evidence.entities), evidence.items)
    head = place.role == "head" and place.has_rows and _names_columns(text)
    if place.role == "head":
        short = not place.has_rows and all(map(_is_bare, cells_of(text)))
    else:
        short = bool(place.role) and _is_bare(text)
    bare = short or (head and not _measures(text))
    code = code and not hides_letters(text) and PLAIN_WORDS.search(read) is None
    written = without_marks(re.sub(r"\s", " ", without_links(read)))
    written = SETTING.sub(lambda match: f"{match[1]}:{' ' * (len(match[2]) - 1)}", written)
    written = written if written.isascii() else plain_letters(written)
    if written.isascii() and written.isupper() and len(written.split()) > 4:  # no names or codes
        written = written.lower()
    prose = not bare and not code and not written.isspace()
    own = earlier[-1] if earlier and earlier[-1].endswith("?") else ""
    clear = prose and lexicon_set("function_words", "negations").isdisjoint(fold(own).split())
    asked = proposition_of(written, own or question, evidence.all_names) if clear else None
    asks = _asks(written) if prose and written.rstrip().endswith("?") else ""
    prose, head = prose and asks != "polar", head or asks == "open"
    behind = " ".join(read.split())
    whole = Stretch(text, 0, len(text))
    if asked is None:
        return Claim(whole, written, question, before, prose, head, evidence, behind)
    stated, denied = asked
    place_of = Stretch(stated, 0, len(stated))
    before = _last(earlier[:-1]) if own else ""
    return Claim(
        place_of, stated, "", before, True, False, evidence, behind, answers=whole, denied=denied
    )


def _last(earlier: Sequence[str]) -> str:
    """The last sentences that fit ``BEFORE_CHARS``, one at least."""
    kept: list[str] = []
    room = BEFORE_CHARS
    for sentence in reversed(earlier):
        if kept and len(sentence) > room:
            break
        kept.append(sentence)
        room -= len(sentence) + 1
    return " ".join(reversed(kept))


def _is_within(spans: Sequence[Span], offset: int) -> bool:
    """True if an offset is in any of some ordered spans."""
    place = bisect_right(spans, offset, key=itemgetter(0)) - 1
    return place >= 0 and offset < spans[place][1]


BARE_WORDS = 3
"""Most words of a heading, of a label above a list or of a column's name that only names."""

SETTING = re.compile(r"^(\w[\w .-]{0,40}?)(\s?=\s?)(?=[^\s=])")
"""The name of a value and its sign, as a file of settings has them."""

ASKING = frozenset({"WDT", "WP", "WP$", "WRB"})


def _names_columns(head: str) -> bool:
    """True if the cells of a table's head assert nothing."""
    cells = [cell for cell in cells_of(head) if not _is_bare(cell)]
    return not (any(map(hides_letters, cells)) or _asserts(cells))


def _measures(text: str) -> bool:
    """True if a text contains an amount with its unit, such as *range 777 km*."""
    values = [item.value for item in find_values(text)]
    return any(isinstance(value, Quantity) and value.unit is not None for value in values)


def _is_bare(text: str) -> bool:
    """True for a heading, a label or a column's name of hardly a word and no figures."""
    few = len(text.split()) <= BARE_WORDS
    return few and not (hides_letters(text) or any(map(str.isdigit, text)))


def _asks(question: str) -> Literal["polar", "open", ""]:
    """How a question asks if it states nothing besides: *Does it need a chimney?*, *Overdraft?*.

    One with a value, a negation, another clause or a quality of what it names may presuppose.
    """
    [doc] = parse([question.strip()])
    words = [token for token in doc if token.is_alpha or token.is_digit]
    if not words or len(words) > 10:  # a longer one states something
        return ""
    embedded = {"acl", "advcl", "appos", "ccomp", "csubj", "neg", "relcl", "parataxis"}
    if any(token.dep_ in embedded or token.tag_ == "POS" for token in doc):
        return ""
    first = next((word for word in words if word.dep_ != "cc"), words[0])
    vague = lexicon_set("grammar", "vague")
    definite = [
        word
        for word in words
        if any(c.dep_ in ("det", "poss") and c.lower_ not in vague for c in word.children)
    ]
    described = [  # *the free bicycle*, *the 5-euro ticket*
        word.dep_
        for word in definite
        if any(c.dep_ == "amod" for c in word.children) or any(c.like_num for c in word.subtree)
    ]
    if first.tag_ in ASKING:
        presupposes = first.lower_ == "why" or find_values(question)
        return "" if presupposes or {"dobj", "pobj"}.intersection(described) else "open"
    verbs = any(token.tag_.startswith(("MD", "VB")) for token in words)
    asked = first.lower_ in lexicon_set("grammar", "auxiliaries") or not verbs or len(words) < 3
    return "polar" if asked and not described else ""


def _asserts(cells: list[str]) -> bool:
    """True if any cell is a sentence: a subject with a statement about it."""
    for doc in parse([cell for cell in cells if not cell.endswith("?")]):
        for root in (token for token in doc if token.head.i == token.i):
            said = [root, *(child for child in root.children if child.dep_.startswith("aux"))]
            subject = any(child.dep_ in {"expl", "nsubj", "nsubjpass"} for child in root.children)
            asks = doc[0].tag_ in ASKING
            finite = any(token.tag_ in {"MD", "VBD", "VBP", "VBZ"} for token in said)
            if subject and not asks and finite:
                return True
    return False


SUBJECTS = frozenset({"nsubj", "nsubjpass", "expl", "csubj"})


def proposition_of(
    answer: str, question: str, names: Collection[str] = ()
) -> tuple[str, bool] | None:
    """What a bare *yes* or *no* to a polar question, or *it is not true that*, states or denies.

    Returns:
        The proposition, and whether it is denied; None for any other answer or question.
    """
    untrue = "|".join(lexicon("grammar")["untrue"])
    whole = rf"(?:{untrue}) (?!.*\b(?:but|only)\b)((?:[^,;?]|,(?=\d))+?)[.!]?"
    if framed := re.fullmatch(whole, plain(answer).strip(), re.IGNORECASE):
        return f"{framed[1][0].upper()}{framed[1][1:]}.", True
    denied = _denies(answer)
    if denied is None or not question.strip():
        return None
    question = without_marks(plain(question))
    said = r"\s*(?:true or false|yes or no|is it true that)\b[\s:,]*"  # before a proposition
    if opener := re.match(said, question, re.IGNORECASE):
        stated: str | None = question[opener.end() :].rstrip(" ?.")
    else:
        asked = [item.text for item in split_sentences(question)]
        stated = _declared(next((t for t in reversed(asked) if t.endswith("?")), asked[-1]), names)
    return (f"{stated[0].upper()}{stated[1:]}.", denied) if stated else None


def _denies(answer: str) -> bool | None:
    """Whether a bare answer is a no; None of what says more."""
    tokens = tokenise(plain(answer))
    if not tokens or len(tokens) > 6 or answer.rstrip().endswith("?"):  # *No, it does not.*
        return None
    answers = lexicon("function_words")["answers"]
    words = [token.folded for token in tokens if token.folded not in answers["softened"]]
    first, *rest = words or [""]
    light = lexicon_set("function_words", "third_persons") | lexicon_set("grammar", "echoes")
    negations = lexicon_set("function_words", "negations")
    light |= frozenset(answers["yes"] if first in answers["yes"] else answers["no"])
    if not negations.union(light).issuperset(rest):
        return None
    if first in answers["no"] or first in negations or rest == ["not"]:
        return True
    return False if first in answers["yes"] and not negations.intersection(rest) else None


def _declared(question: str, names: Collection[str]) -> str | None:
    """A polar question as a statement: *Is it red?* → *it is red*; None of any other question."""
    [doc] = parse([question.strip()])
    words = [token for token in doc if not token.is_space]
    if not words or fold(words[0].text) not in lexicon_set("grammar", "auxiliaries"):
        return None
    first = words[0]
    called = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    named = re.compile(rf"\s+((?:the )?(?:{called}))(?!\w|'s| of )\s+", re.IGNORECASE)
    if called and (match := named.match(doc.text, len(first))):
        return f"{match[1]} {first.text.lower()} {doc.text[match.end() :].rstrip('? ')}"
    verb = first if first.dep_ == "ROOT" else first.head
    subject = next((token for token in verb.children if token.dep_ in SUBJECTS), None)
    if subject is None:
        subject = next((token for token in words[1:] if token.dep_ in SUBJECTS | {"attr"}), None)
    if subject is None or subject.right_edge.i + 1 >= len(doc) or subject.left_edge.i < 1:
        return None
    end = subject.right_edge.idx + len(subject.right_edge)
    name = doc.text[first.idx + len(first) : end].strip()
    rest = doc.text[end:].strip().rstrip("?").strip()
    return f"{name} {first.text.lower()} {rest}" if name and rest else None


def subjects_of(
    claims: Sequence[Claim], evidence: PreparedEvidence, asked: str | None
) -> list[frozenset[str]]:
    """For each sentence of an answer the subjects that it is about.

    A sentence that names none is about those of the sentence before it, initially those that the
    question names; a sentence with a pronoun is about those as well as the ones it names. If
    nobody is named at all, the only subject of facts is meant, or an object with its parts.
    """
    labels = evidence.labels
    others = frozenset(evidence.value_names)
    last = frozenset({asked}) if asked and asked in {*labels, *others} else frozenset[str]()
    last = last or (claims[0].asked_about if claims else last)
    if not last and evidence.described:
        root = min(evidence.described, key=len)
        alone = all(item.startswith(root) for item in evidence.described)
        last = evidence.described if alone else last
    known = last - others
    back = lexicon_set("function_words", "third_persons")
    found: list[frozenset[str]] = []
    for claim in claims:
        here = claim.about
        points = not back.isdisjoint([token.folded for token in claim.tokens[:4]])
        if not here or points:
            # Somebody whom the evidence knows only as a value is meant by a pronoun alone.
            here = here | (last if points else last - others or known)
        found.append(here)
        last = here or last
        known = here - others or known
    return found


def opening_name(text: str, tokens: Sequence[Token]) -> Span | None:
    """The name that a sentence opens with, as its subject or in *the price of NAME*."""
    light = lexicon_set("function_words", "articles")
    verbs = lexicon_set("grammar", "auxiliaries") | lexicon_set("grammar", "be")
    leads = lexicon_set("function_words", "within_claim") - {"of"} - light
    for start, end in named_runs(text, tokens):
        before = [token.folded for token in tokens if token.end <= start]
        if re.search("[,:=]", text[:start]) or not verbs.isdisjoint(before):
            return None
        if leads.isdisjoint(before):
            return start, end
    return None


def named_runs(text: str, tokens: Sequence[Token]) -> list[Span]:
    """The names of a text, each with the number behind it: *Fjell 4*."""
    found = []
    for start, end in find_names(text):
        behind = bisect_left(tokens, end, key=attrgetter("start"))
        token = tokens[behind] if behind < len(tokens) else None
        numbered = token and token.start == end + 1 and token.text.isdigit()
        found.append((start, token.end if token and numbered else end))
    return found


def _about(text: str, tokens: Sequence[Token], evidence: PreparedEvidence) -> frozenset[str]:
    """Whom a text is about: the subjects that it names, or the value that it opens with."""
    here = named_in(text, tokens, evidence)
    opening = opening_name(text, tokens) if evidence.value_names and "|" not in text else None
    if opening is None:
        return here
    name = text[slice(*opening)]
    words = {token.folded for token in tokenise(name)}
    opened = frozenset(
        value
        for value in evidence.value_names
        if words <= {token.folded for token in tokenise(value)}
    )
    return here if named_in(name, tokenise(name), evidence) else opened | here


def named_in(text: str, tokens: Sequence[Token], evidence: PreparedEvidence) -> frozenset[str]:
    """Which subjects of the evidence a text names: by label, other name, or a part of a name.

    A word inside a fuller name of another subject names nobody else: the *Bach* of *Johann
    Christian Bach* is not Johann Bach.
    """
    whole: dict[str, list[Span]] = {}
    for label in evidence.labels_in(tokens):
        spans = label_in(text, tokens, label)
        for other in evidence.names.get(label, ()):
            spans = spans or (label_in(text, tokens, other) if len(other) > 2 else [])
        if spans:
            whole[label] = spans
    taken = [span for spans in whole.values() for span in spans]
    inside = {
        label
        for label, spans in whole.items()
        if len(taken) > 1 and all(within_another(span, taken) for span in spans)
    }
    free = tokens
    for start, end in taken:
        free = [token for token in free if token.start < start or end < token.end]
    parts: dict[str, int] = {}
    runs = named_runs(text, tokens)
    for label in evidence.labels_sharing(free):
        spans = [
            span
            for span in (part_of_name_in(free, label) if " " in label else ())
            if fold(text[slice(*span)]) not in evidence.folded_values
            if not any(
                a <= span[0] and span[1] <= b and _differs(text[a:b], label) for a, b in runs
            )
        ]
        if label not in whole and spans:
            parts[label] = len(spans)
    most = max(parts.values(), default=0)
    named = frozenset(whole) - inside | {item for item, count in parts.items() if count == most}
    return named or _described_in(tokens, evidence)


def _described_in(tokens: Sequence[Token], evidence: PreparedEvidence) -> frozenset[str]:
    """Subjects named by a common noun of their label that is in no other's: *the overlocker*."""
    articles = lexicon_set("function_words", "articles")
    nouns = [b for a, b in pairwise(tokens) if a.folded in articles and b.text.islower()]
    by_word = evidence.name_index.by_word
    found = {(noun.stem, label) for noun in nouns for label in by_word.get(noun.folded, ())}
    return frozenset(
        label
        for stem, label in found
        if all(item.subject == label for item in evidence.statements if stem in item.stems)
    )


def _differs(name: str, label: str) -> bool:
    """True if a name has a word that a label lacks: *Orazio Gentileschi*, *Fjell 4*."""
    titles = lexicon_set("abbreviations", "titles")
    own = {token.folded for token in tokenise(label)}
    return any(token.folded not in own and token.folded not in titles for token in tokenise(name))
