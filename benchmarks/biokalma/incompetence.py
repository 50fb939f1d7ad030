"""``[NA]`` measured without a model in the loop (KaLMA 4.4).

A text is taken whose triples are known sentence by sentence, k of them are removed from the
evidence, and the text is checked. A sentence should carry ``[NA]`` exactly when it states a
removed triple, so precision and recall need no judge's opinion.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from benchmarks.biokalma.templates import tell
from guardrail.config import GuardrailConfig
from guardrail.core.errors import InputError
from guardrail.core.text.sentences import split_sentences
from guardrail.core.types import Triple, Value
from guardrail.guard import CheckRequest, Guardrail
from guardrail.markers.grammar import parse
from guardrail.models.facts import is_housekeeping
from guardrail.policy import ANNOTATE

if TYPE_CHECKING:
    from kg.sparql import SparqlGraph
    from kg.store import OxigraphGraph

__all__ = ["Incompetence", "KnownSentence", "KnownText", "measure", "people_texts", "read_dart"]

MOST_REMOVED = 3  # KaLMA 4.4
_FACTS = 6  # triples of a person's text; KaLMA's minimum sets have six
_BATCH = 16


class KnownSentence(Value):
    """A sentence and the triples it states."""

    text: str
    triples: tuple[Triple, ...]


class KnownText(Value):
    """A text whose triples are known.

    Attributes:
        question: What it answers; may be empty.
        sentences: In order; the text is their join by one space.
        evidence: All triples known of its subjects, those of the sentences included.
    """

    question: str
    sentences: tuple[KnownSentence, ...]
    evidence: tuple[Triple, ...]

    @property
    def text(self) -> str:
        """The whole text."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def triples(self) -> tuple[Triple, ...]:
        """All triples stated."""
        return tuple(triple for sentence in self.sentences for triple in sentence.triples)


class Incompetence(BaseModel):
    """What came of k removed triples.

    Attributes:
        source: Where the texts are from.
        removed: Triples removed from the evidence of each text.
        texts: Texts with more than ``removed`` triples.
        sentences: Their sentences.
        marked: Sentences marked ``[NA]``.
        precision: Share of marked sentences that state a removed triple.
        recall: Share of removed triples whose sentence is marked.
        false_alarms: Share of sentences marked although all their triples are there.
    """

    source: str
    removed: int
    texts: int
    sentences: int
    marked: int
    precision: float | None
    recall: float | None
    false_alarms: float | None = Field(default=None)


def measure(
    source: str,
    texts: Sequence[KnownText],
    *,
    judge: str = "onnx",
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Incompetence]:
    """Check the texts with 0, 1, 2 and 3 triples removed.

    Args:
        source: Named in the result.
        texts: The texts; those with k triples or fewer are left out for k > 0.
        judge: The guardrail's judge by name.
        seed: Decides what is removed.
        progress: Called with (texts done, total texts).

    Raises:
        GuardrailError: The guardrail cannot work.
    """
    results = []
    with Guardrail(GuardrailConfig(judge=judge)) as guard:
        for removed in range(MOST_REMOVED + 1):
            cases = []
            for number, text in enumerate(texts):
                if removed and len(text.triples) <= removed:
                    continue
                rng = random.Random(f"{seed}:{source}:{number}")
                # The first k of one order: what is removed for k is removed for k + 1 too.
                order = rng.sample(text.triples, len(text.triples))
                cases.append((text, frozenset(order[:removed])))
            results.append(_measured(source, removed, cases, guard, progress))
    return results


def _measured(
    source: str,
    removed: int,
    cases: Sequence[tuple[KnownText, frozenset[Triple]]],
    guard: Guardrail,
    progress: Callable[[int, int], None],
) -> Incompetence:
    policy = ANNOTATE.model_copy(update={"deadline_s": None})
    sentences = marked = justified = gone = found = intact = alarms = 0
    for first in range(0, len(cases), _BATCH):
        batch = cases[first : first + _BATCH]
        requests = [
            CheckRequest(
                question=text.question,
                answer=text.text,
                evidence=tuple(triple for triple in text.evidence if triple not in absent),
            )
            for text, absent in batch
        ]
        checked = guard.check_batch(requests, policy=policy)
        for (text, absent), answer in zip(batch, checked, strict=True):
            flags = _flags(text, answer.marked)
            for sentence, flag in zip(text.sentences, flags, strict=True):
                lost = absent.intersection(sentence.triples)
                sentences += 1
                marked += flag
                justified += flag and bool(lost)
                gone += len(lost)
                found += len(lost) if flag else 0
                intact += not lost
                alarms += flag and not lost
        progress(min(first + _BATCH, len(cases)), len(cases))
    return Incompetence(
        source=source,
        removed=removed,
        texts=len(cases),
        sentences=sentences,
        marked=marked,
        precision=justified / marked if removed and marked else None,
        recall=found / gone if gone else None,
        false_alarms=alarms / intact if intact else None,
    )


def _flags(text: KnownText, marked: str) -> list[bool]:
    """For each sentence, True if it contains or directly precedes an ``[NA]``."""
    parsed = parse(marked)
    flags = []
    start = 0
    for sentence in text.sentences:
        end = start + len(sentence.text)
        flags.append(any(marker.na for marker in parsed.within(start, end)))
        start = end + 1
    return flags


def people_texts(graph: OxigraphGraph | SparqlGraph, n: int, seed: int = 0) -> list[KnownText]:
    """Short biographies from the template verbaliser, with all that the graph holds as evidence.

    Args:
        graph: A graph with Wikidata's vocabulary that answers SPARQL.
        n: Number of persons.
        seed: Decides persons, triples and wording.

    Raises:
        KnowledgeGraphError: The graph cannot answer.
    """
    result = graph.query(
        "SELECT ?person WHERE { ?person <http://www.wikidata.org/prop/direct/P31> "
        "<http://www.wikidata.org/entity/Q5> } ORDER BY ?person"
    )
    ids = [str(row[0]).rsplit("/", 1)[-1] for row in result.rows]
    random.Random(seed).shuffle(ids)
    texts: list[KnownText] = []
    for entity in ids:
        if len(texts) == n:
            break
        (subgraph,) = graph.subgraphs([entity])
        rng = random.Random(f"{seed}:{entity}")
        by_property = {
            triple.property: triple
            for triple in subgraph.triples
            if not is_housekeeping(triple.property)
        }
        if len(by_property) < _FACTS:
            continue
        chosen = rng.sample(list(by_property.values()), _FACTS)
        sentences = []
        while chosen:
            stated = [chosen.pop() for _ in range(min(len(chosen), rng.choice((1, 2))))]
            sentences.append(KnownSentence(text=tell(stated, rng), triples=tuple(stated)))
        texts.append(
            KnownText(
                question=f"Who was {subgraph.entity.label}?",
                sentences=tuple(sentences),
                evidence=subgraph.triples,
            )
        )
    return texts


def read_dart(data: Path, n: int, seed: int = 0) -> list[KnownText]:
    """Single sentences of DART, with their own triples as evidence.

    Only sentences are taken in which the value of every triple stands (letter case and commas in
    numbers aside), because some of DART's sentences leave a triple unsaid.

    Args:
        data: Folder with ``triples/dart_dev.jsonl.gz``.
        n: Number of sentences.
        seed: Decides which.

    Raises:
        InputError: The file cannot be read.
    """
    path = data / "triples" / "dart_dev.jsonl.gz"
    texts = []
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                texts += _dart(row["triples"], row["texts"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"cannot read DART from {path}: {error}") from error
    return random.Random(seed).sample(texts, min(n, len(texts)))


def _dart(rows: Iterable[Sequence[str]], texts: Sequence[str]) -> list[KnownText]:
    triples = tuple(
        Triple(subject=subject, property=name.replace("_", " ").lower(), value=value)
        for subject, name, value in rows
    )
    if len(triples) < 2 or any(t.subject.startswith("[") for t in triples):
        return []  # a table's title is no fact of the sentence
    for text in texts:
        stated = _plain(text)
        if len(split_sentences(text)) == 1 and all(_plain(t.value) in stated for t in triples):
            sentence = KnownSentence(text=text.strip(), triples=triples)
            return [KnownText(question="", sentences=(sentence,), evidence=triples)]
    return []


def _plain(text: str) -> str:
    return text.casefold().replace(",", "").replace("_", " ")


def table(results: Sequence[Incompetence]) -> str:
    """A table for a person; KaLMA reports an [NA] recall of about 15 % (Figure 4)."""
    lines = [
        "| Texts | Removed | Sentences | [NA] precision | [NA] recall | False alarms |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.source} ({row.texts}) | {row.removed} | {row.sentences} | "
        f"{_share(row.precision)} | {_share(row.recall)} | {_share(row.false_alarms)} |"
        for row in results
    ]
    return "\n".join(lines)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
