"""How well sentences are cited and gaps marked, with what was removed known exactly.

    python -m guardrail.benchmarks.attribution --data DIR [--source dart|people] [--rows 200]
        [--part report|develop] [--judge onnx] [--seed 1]

*dart*: texts of ``DIR/triples/dart_dev.jsonl.gz`` with their own triples inline; *people*:
sentences that the verbaliser writes from the shipped people graph. k = 0, 1, 2, 3 triples that
the text states are removed before the check (KaLMA 4.4, without a model in the loop). Whether a
sentence states a removed triple is told by containment of its value, so every measure here is
model-free. The part ``report`` holds subjects that neither the judge's training nor the tuning
of this package has seen.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from guardrail import ANNOTATE, CheckRequest, Guardrail, GuardrailConfig
from guardrail.text.values import agreement, find_dates, parse_date, tokenise
from guardrail.types import Category, GuardedAnswer, Sentence, Triple, Value

__all__ = [
    "GapReport",
    "Statement",
    "measure",
    "people_statements",
    "read_dart",
    "read_options",
    "statements_of",
]

SOURCES = ("dart", "people")

MAX_REMOVED = 3

FACTS = 5
"""Facts told of each person, in four sentences."""

PERSONS = """
    PREFIX wd: <http://www.wikidata.org/entity/> PREFIX wdt: <http://www.wikidata.org/prop/direct/>
    SELECT DISTINCT ?person WHERE { ?person wdt:P31 wd:Q5 }
"""

UNTOLD = frozenset(
    {
        "sex or gender", "given name", "surname", "instance of", "topic's main category",
        "topic's main infobox", "described by source", "depicted by", "list of works",
        "discography", "filmography", "archives at",
    }
)  # fmt: skip
"""Properties that no biography tells, though their values, as names, stand in its words."""

JUDGE_SHARE = 0.2
"""Share of DART's subjects that the judge's training holds out (judges.training)."""


class Statement(Value):
    """A text and the triples it was written from."""

    question: str
    text: str
    triples: tuple[Triple, ...]


class GapReport(Value):
    """Sentence-level measures with k triples removed.

    Attributes:
        removed: k.
        texts: Texts checked.
        claims: Sentences that make a claim.
        citations: Citations returned.
        correct: Those that are one of the triples given.
        stated: Triples given that the text states, by containment, but for those of ``UNTOLD``.
        recalled: Those of them that were cited.
        marked: Sentences with ``[NA]``.
        marked_rightly: Those of them that state a removed triple.
        gaps: Removed triples.
        gaps_found: Those stated by a sentence with ``[NA]``.
        still_supportive: Texts of which every claim is supportive.
    """

    removed: int
    texts: int
    claims: int
    citations: int
    correct: int
    stated: int
    recalled: int
    marked: int
    marked_rightly: int
    gaps: int
    gaps_found: int
    still_supportive: int

    @property
    def na_precision(self) -> float | None:
        """Share of ``[NA]`` sentences that state a removed triple."""
        return self.marked_rightly / self.marked if self.marked else None

    @property
    def na_recall(self) -> float | None:
        """Share of removed triples stated by an ``[NA]`` sentence."""
        return self.gaps_found / self.gaps if self.gaps else None


def read_dart(data: Path, part: str = "report") -> list[Statement]:
    """DART texts, one per entry.

    Args:
        data: Folder with ``triples/dart_dev.jsonl.gz``.
        part: ``report`` for half of the subjects that the judge was not trained on, ``develop``
            for the other half of them, ``seen`` for the rest.
    """
    from judges.training.rows import held_out

    found = []
    with gzip.open(data / "triples" / "dart_dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            subject = _plain(row["triples"][0][0])
            which = "seen"
            if held_out(subject, JUDGE_SHARE, salt="dart"):
                which = "report" if held_out(subject, 0.5, salt="attribution") else "develop"
            if which != part:
                continue
            triples = tuple(
                Triple(subject=_plain(one), property=name, value=_plain(value))
                for one, name, value in row["triples"]
                if _plain(value)
            )
            text = " ".join(row["texts"][0].split())
            if triples and text:
                found.append(Statement(question="", text=text, triples=triples))
    return found


def people_statements(part: str = "report", *, seed: int = 1) -> list[Statement]:
    """Short biographies that the verbaliser writes from the shipped people graph.

    Args:
        part: ``report`` or ``develop``; no person is in both.
        seed: Chooses facts and phrasings.
    """
    from judges.training.rows import held_out
    from kg import open_people_graph
    from kg.verbalise import finish, predicate, surface

    rng = random.Random(f"{seed}/people")
    graph = open_people_graph()
    ids = sorted(
        str(row[0]).rpartition("/")[2] for row in graph.query(PERSONS).rows if row[0] is not None
    )
    found = []
    for subgraph in graph.subgraphs(ids):
        if held_out(subgraph.entity.id, 0.5, salt="attribution") != (part == "report"):
            continue
        facts = [fact for fact in subgraph.triples if fact.property not in UNTOLD]
        if len(facts) < FACTS:
            continue
        name = subgraph.entity.label
        sex = next((f.value for f in subgraph.triples if f.property == "sex or gender"), None)
        told = [
            predicate(fact.property, surface(fact.value, rng.randrange(4)), rng.randrange(3))
            for fact in rng.sample(facts, FACTS)
        ]
        he = {"male": "He", "female": "She"}.get(sex or "", name)
        text = " ".join(
            finish(sentence)
            for sentence in (
                f"{name} {told[0]}",
                f"{he} {told[1]} and {told[2]}",
                f"{he} {told[3]}",
                f"{he} {told[4]}",
            )
        )
        found.append(Statement(question=f"Who was {name}?", text=text, triples=subgraph.triples))
    return found


def measure(
    guard: Guardrail, statements: Sequence[Statement], removed: int, *, seed: int = 1
) -> tuple[GapReport, list[GuardedAnswer]]:
    """Check every text with k of the triples it states removed.

    Texts that state fewer than k triples that can be removed, or would be left without any, are
    left out.

    Args:
        guard: The guardrail.
        statements: Texts with their triples.
        removed: k.
        seed: Chooses what is removed.
    """
    rng = random.Random(f"{seed}/{removed}")
    requests, gaps = [], []
    for statement in statements:
        able = [triple for triple in statement.triples if _removable(triple, statement)]
        if len(able) < removed or (removed and len(statement.triples) <= removed):
            continue
        gone = rng.sample(able, removed)
        left = tuple(triple for triple in statement.triples if triple not in gone)
        if any(_stated(t, triple.value) for triple in gone for t in _texts(left)):
            continue
        requests.append(
            CheckRequest(question=statement.question, answer=statement.text, evidence=left)
        )
        gaps.append(gone)
    answers = guard.check_batch(requests)
    totals = dict.fromkeys(GapReport.model_fields, 0)
    totals |= {"removed": removed, "texts": len(requests)}
    for request, answer, gone in zip(requests, answers, gaps, strict=True):
        for name, count in _count(request.evidence or (), answer, gone).items():
            totals[name] += count
    return GapReport(**totals), answers


def _count(
    evidence: Sequence[object], answer: GuardedAnswer, gone: Sequence[Triple]
) -> dict[str, int]:
    given = [item for item in evidence if isinstance(item, Triple)]
    citations = {triple.citation for triple in given}
    cited = {one for sentence in answer.sentences for one in sentence.citations}
    claims = [one for one in answer.sentences if one.category is not None]
    marked = [one for one in claims if one.na]
    stated = [triple for triple in given if _told(triple, answer.text)]
    return {
        "claims": len(claims),
        "citations": sum(len(one.citations) for one in answer.sentences),
        "correct": sum(c in citations for one in answer.sentences for c in one.citations),
        "stated": len(stated),
        "recalled": sum(triple.citation in cited for triple in stated),
        "marked": len(marked),
        "marked_rightly": sum(
            any(_stated(one.text, triple.value) for triple in gone) for one in marked
        ),
        "gaps": len(gone),
        "gaps_found": sum(
            any(_stated(one.text, triple.value) for one in marked) for triple in gone
        ),
        "still_supportive": int(all(one.category is Category.SUPPORTIVE for one in claims)),
    }


def _texts(triples: Sequence[Triple]) -> Iterator[str]:
    for triple in triples:
        yield triple.value
        yield triple.subject


def _removable(triple: Triple, statement: Statement) -> bool:
    """Whether the text states a triple, so that its removal leaves a gap."""
    return triple.value.lower() not in ("yes", "no") and _told(triple, statement.text)


def _told(triple: Triple, text: str) -> bool:
    """Whether a text tells a fact; a name that stands in it does not tell the name's own facts."""
    return triple.property not in UNTOLD and _stated(text, triple.value)


def _stated(text: str, value: str) -> bool:
    """Whether all words of a value stand in a text one after the other, dates in any form."""
    date = parse_date(value)
    if date is not None:
        return any(agreement(told, date) == "same" for told in find_dates(text))
    words = [token.folded for token in tokenise(value)]
    told = [token.folded for token in tokenise(text)]
    return bool(words) and any(
        told[place : place + len(words)] == words for place in range(len(told) - len(words) + 1)
    )


def _plain(text: str) -> str:
    return " ".join(text.replace("_", " ").strip('"').split())


def _row(report: GapReport) -> str:
    def share(part: int, whole: int) -> str:
        return f"{part / whole:.3f}" if whole else "-"

    cells = (
        f"{report.removed}",
        f"{report.texts}",
        f"{report.claims}",
        share(report.correct, report.citations),
        share(report.recalled, report.stated),
        share(report.marked, report.claims),
        share(report.marked_rightly, report.marked) if report.removed else "-",
        share(report.gaps_found, report.gaps),
        share(report.still_supportive, report.texts),
    )
    return "| " + " | ".join(cells) + " |"


def _wrong(answers: Sequence[GuardedAnswer], k: int) -> Iterator[Sentence]:
    for answer in answers:
        yield from (one for one in answer.sentences if one.category and one.na == (k == 0))


def read_options(
    arguments: Sequence[str] | None, about: str | None, *, parts: Sequence[str]
) -> argparse.Namespace:
    """Read the options of a benchmark over statements.

    Args:
        arguments: Of the command line; None for the process's own.
        about: The benchmark's docstring.
        parts: Parts of the data that may be chosen.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0] if about else None)
    parser.add_argument("--data", type=Path, required=True, help="folder with triples/")
    parser.add_argument("--source", choices=SOURCES, default="dart")
    parser.add_argument("--part", choices=parts, default="report")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--judge", default="onnx")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="sentences judged wrongly to print")
    return parser.parse_args(arguments)


def statements_of(options: argparse.Namespace) -> list[Statement]:
    """The statements that such options choose."""
    if options.source == "dart":
        return read_dart(options.data, options.part)
    return people_statements(options.part, seed=options.seed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    options = read_options(arguments, __doc__, parts=("report", "develop", "seen"))
    statements = statements_of(options)
    random.Random(options.seed).shuffle(statements)
    patient = ANNOTATE.model_copy(update={"deadline_s": None})
    guard = Guardrail(GuardrailConfig(judge=options.judge, policy=patient))
    print("| k | texts | claims | correct | recall | [NA] rate | [NA] P | [NA] R | supportive |")
    print("|---|---|---|---|---|---|---|---|---|")
    for k in range(MAX_REMOVED + 1):
        report, answers = measure(guard, statements[: options.rows], k, seed=options.seed)
        print(_row(report))
        for sentence in list(_wrong(answers, k))[: options.show]:
            phrases = [f"{span.text} [{span.kind}]" for span in sentence.spans]
            cited = [f"{one.property}: {one.value}" for one in sentence.citations]
            print(f"    {sentence.text!r} {phrases} {cited}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
