"""Cases: triples with a text that has one error, or with a true text."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.newcomer.domains import DOMAINS as COMPANIES
from benchmarks.newcomer.domains import Domain
from benchmarks.verdicts.cases import Case
from benchmarks.verdicts.sets import read_set, statement_case
from guardrail.core.text.lexicon import lexicon
from guardrail.core.text.names import label_in
from guardrail.core.text.values import find_values
from guardrail.core.text.words import tokenise
from guardrail.core.types import Evidence, Passage, Triple, Verdict

__all__ = [
    "KINDS",
    "SETS",
    "ErrorCase",
    "chatbot_cases",
    "domain_cases",
    "generated",
    "true_cases",
]

KINDS = ("value", "name", "yes_no", "hours")
SETS = ("dart", "webnlg")

DOMAINS = Path(__file__).parent / "domains"
UNSEEN = Path(__file__).parents[1] / "unseen"

YEARS = (1500, 2100)
"""Numbers between these are years, and stay so."""

NEAR = (-12, -7, -4, -3, -2, -1, 1, 2, 3, 5, 8, 14)
"""By how much small numbers and years are put off."""


class ErrorCase(NamedTuple):
    """A text to correct.

    Attributes:
        set: Name of the set it is from.
        kind: One of ``KINDS``; empty for a true text.
        evidence: What it is held against.
        question: What it answers.
        text: The text, with the error in it.
        true: The sentence before the error, in every accepted wording; empty for a true
            text.
        start: Offset of the error.
        broken: The triple that the text no longer tells; None where ``true`` says it all.
        wrong: The value that replaces the right one.
    """

    set: str
    kind: str
    evidence: tuple[Evidence, ...]
    question: str
    text: str
    true: tuple[str, ...] = ()
    start: int = 0
    broken: Triple | None = None
    wrong: str = ""


def true_cases(data: Path, limit: int, seed: int) -> list[ErrorCase]:
    """Texts of DART and WebNLG as they are."""
    return [
        ErrorCase(case.set, "", case.evidence, case.question, case.text)
        for name in SETS
        for case in _supported(name, data, limit, seed)
    ]


def generated(data: Path, limit: int, seed: int) -> list[ErrorCase]:
    """Texts of DART and WebNLG with one error each, where one can be made.

    Args:
        data: The folder of public data.
        limit: Texts read of each set.
        seed: Chooses texts and errors.
    """
    found: list[ErrorCase] = []
    for name in SETS:
        cases = _supported(name, data, limit, seed)
        others: dict[str, set[str]] = {}
        for case in cases:
            for item in case.evidence:
                assert isinstance(item, Triple)
                others.setdefault(item.property, set()).add(item.value)
        rng = random.Random(f"{seed}/{name}")
        for case in cases:
            broken = list(_broken(case, others, rng))
            if broken:
                found.append(rng.choice(broken))
    return found


def domain_cases(folder: Path = DOMAINS) -> Iterator[ErrorCase]:
    """The cases of the project's own domains, each as it is true and with its error."""
    for path in sorted(folder.glob("*.json")):
        domain = json.loads(path.read_text(encoding="utf-8"))
        evidence: tuple[Evidence, ...] = (
            *(Triple(*fact) for fact in domain["triples"]),
            *(Passage(text, title=title) for title, text in domain.get("passages", ())),
        )
        for row in domain["cases"]:
            asked = row.get("question", "")
            yield ErrorCase(path.stem, "", evidence, asked, row["true"][0])
            true = tuple(row["true"])
            yield ErrorCase(path.stem, row["kind"], evidence, asked, row["wrong"], true)


def chatbot_cases() -> Iterator[ErrorCase]:
    """True answers of chatbots: those of the three companies, and sentences of unseen authors.

    False sentences of an answer are left out.
    """
    for company in sorted(path.name for path in COMPANIES.iterdir() if path.is_dir()):
        for item in Domain(company).answers:
            request = item.request
            true = (
                request.answer[one.start : one.end]
                for one in item.sentences
                if one.label in (Verdict.SUPPORTED, Verdict.NO_CLAIM)
            )
            evidence = tuple(request.evidence or ())
            yield ErrorCase(company, "", evidence, request.question, " ".join(true))
    for path in sorted(UNSEEN.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            part = json.loads(line)
            for row in part["rows"]:
                case = statement_case(path.stem, {**row, "evidence": part["evidence"]})
                if case.label is Verdict.SUPPORTED:
                    yield ErrorCase(path.stem, "", case.evidence, case.question, case.text)


def _supported(name: str, data: Path, limit: int, seed: int) -> list[Case]:
    cases = read_set(name, data, None, seed=seed)
    return [case for case in cases if case.label is Verdict.SUPPORTED][:limit]


def _broken(case: Case, others: Mapping[str, set[str]], rng: random.Random) -> Iterator[ErrorCase]:
    """The text with the value of one of its triples exchanged, one case for each that can be."""
    tokens = tokenise(case.text)
    triples = [item for item in case.evidence if isinstance(item, Triple)]
    for triple in triples:
        spans = label_in(case.text, tokens, triple.value)
        if len(spans) != 1 or _is_ambiguous(triple, triples):
            continue
        start, end = spans[0]
        written = case.text[start:end]
        if re.search(r"\d", triple.value):
            values = find_values(triple.value)
            one = len(values) == 1 and values[0].text == triple.value.strip()
            wrong = _other_number(written, rng) if one else None
            kind = "value"
        else:
            kind, wrong = "name", _other_name(triple, case, others, rng)
        if wrong is None or wrong == written:
            continue
        text = case.text[:start] + wrong + case.text[end:]
        yield ErrorCase(
            case.set,
            kind,
            case.evidence,
            case.question,
            text,
            (case.text,),
            start,
            triple,
            wrong,
        )


def _is_ambiguous(triple: Triple, triples: Sequence[Triple]) -> bool:
    """True if another triple has the same value, or the same subject and property."""
    return any(
        other is not triple
        and (
            triple.value in (other.value, other.subject)
            or (other.subject, other.property) == (triple.subject, triple.property)
        )
        for other in triples
    )


def _other_number(written: str, rng: random.Random) -> str | None:
    """A number or date with its last or only number changed, written as it was."""
    words = [word for word, value in lexicon("numbers")["units"].items() if 2 <= value <= 12]
    if written.lower() in words:
        return str(rng.choice([word for word in words if word != written.lower()]))
    figures = list(re.finditer(r"\d+", written.replace(",", "")))
    if not figures or "," in written:
        return None
    match = rng.choice(figures)
    number = int(match.group())
    if match.group().startswith("0") or len(match.group()) > 9:
        return None
    step = rng.choice([step for step in NEAR if number + step > 0])
    size = len(match.group())
    other = number + (
        step if size < 3 or YEARS[0] <= number <= YEARS[1] else step * 10 ** (size - 2)
    )
    if len(str(other)) != size or (size < 3 and len(figures) > 1 and other > 12):
        return None
    return f"{written[: match.start()]}{other}{written[match.end() :]}"


def _other_name(
    triple: Triple, case: Case, others: Mapping[str, set[str]], rng: random.Random
) -> str | None:
    """The name that another text has of the same property, and that nothing here tells."""
    if not triple.value[:1].isupper() or len(triple.value) > 60:
        return None
    known = " ".join(
        f"{item.subject} {item.value}" for item in case.evidence if isinstance(item, Triple)
    )
    names = [
        value
        for value in sorted(others[triple.property])
        if value[:1].isupper()
        and not re.search(r"[\d()]", value)
        and value.lower() not in f"{known} {case.text}".lower()
        and triple.value.lower() not in value.lower()
    ]
    return rng.choice(names) if names else None
