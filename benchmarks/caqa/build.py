"""Build CAQA rows from any graph: sample, extend, edit, verbalise, check (CAQA 4)."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Iterator

from benchmarks.caqa.edits import consistent, edit, plan
from benchmarks.caqa.graph import Fact, FactGraph
from benchmarks.caqa.properties import is_sensitive
from benchmarks.caqa.rows import CAQARow, Split, SubFact
from benchmarks.caqa.shapes import Query, sample_query
from benchmarks.caqa.wording import Wording
from benchmarks.verbalise import sentence
from guardrail.core.errors import InputError
from guardrail.core.types import Category, Triple

__all__ = ["BuildLog", "build_rows", "part_of", "split_graph"]

DECOY_SHARE = 0.6
"""Share of rows whose evidence holds decoys and echoes; the others are the paper's plain edits.
Without decoys lexical overlap alone tells the category; with these it stays below the limit
of the controls on the people graph and on the larger one, with some room."""
EDITED_SHARE = 0.5
"""Share of queries whose answer changes places with its rival. One half makes the truth of
claim and evidence in the world independent of the category."""
FLAT_SHARE = 0.25
"""Share of rows with flat evidence, the form in which the engine hands graph facts to judges."""
LINKED_SHARE = 0.6
"""Share of rows whose answer states every fact, entities in between included."""
HUB_FACTS = 20
"""A value of this many facts (a country, a language) may occur in every split as a value."""
HELD_OUT_PROPERTIES = 0.12
"""Share of properties that occur in no split but ``test_relations``."""
_BOUNDS = (("train", 0.7), ("valid", 0.8), ("test", 1.0))
_MISSES = 2000
"""Draws in a row without a new row after which the graph counts as exhausted."""


class BuildLog:
    """Counts what the builder did, for the report: rows by cell, drafts rejected and why."""

    def __init__(self) -> None:
        self.rows: Counter[tuple[str, str]] = Counter()
        self.rejected: Counter[str] = Counter()


def part_of(key: str) -> str:
    """The split an entity belongs to, by hash of its key: the same in every build."""
    point = _unit(f"entity:{key}")
    return next(name for name, bound in _BOUNDS if point < bound)


def held_out(property_label: str) -> bool:
    """Whether a property is kept out of training, by hash of its label."""
    return _unit(f"property:{property_label}") < HELD_OUT_PROPERTIES


def _unit(text: str) -> float:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest()) / 2**48


def split_graph(graph: FactGraph, split: Split) -> FactGraph:
    """The facts that rows of a split may use.

    ``train``, ``valid`` and ``test`` share no fact: a fact belongs to the split of its subject,
    and is dropped where its value has facts of its own and another split, unless that value is
    a hub. ``test_relations`` holds the facts of ``test`` and all facts of held-out properties,
    which no other split has.
    """

    def keep(fact: Fact) -> bool:
        if held_out(fact.property):
            return split == "test_relations"
        part = "test" if split == "test_relations" else split
        if part_of(fact.subject) != part:
            return False
        inner = fact.value not in graph.out or part_of(fact.value) == part
        return inner or len(graph.into[fact.value]) >= HUB_FACTS

    kept = (
        graph.triple(fact) for facts in graph.by_property.values() for fact in facts if keep(fact)
    )
    return FactGraph(kept, graph.types)


def build_rows(
    graph: FactGraph | Iterable[Triple],
    *,
    n: int,
    seed: int = 0,
    split: Split = "train",
    decoys: float = DECOY_SHARE,
    edited: float = EDITED_SHARE,
    queries: Iterable[Query] | None = None,
    log: BuildLog | None = None,
) -> Iterator[CAQARow]:
    """Build rows, one at a time; the same arguments give the same rows.

    Every query gives a row of each category that is defined for it, so that question and answer
    say nothing about the category.

    Args:
        graph: All facts, of every split.
        n: Number of rows; fewer come where the graph gives no more.
        seed: Seed of all choices.
        split: Which part to build; see ``split_graph``.
        decoys: Share of rows with decoys and echoes in the evidence.
        edited: Share of queries whose answer changes places with its rival.
        queries: Grounded queries to use in place of sampled ones (from a KGQA file).
        log: Receives the counts.

    Raises:
        InputError: The split holds no fact.
    """
    whole = graph if isinstance(graph, FactGraph) else FactGraph(graph)
    part = split_graph(whole, split)
    if not len(part):
        raise InputError(f"the graph has no facts for the split {split!r}; give a larger graph")
    log = log if log is not None else BuildLog()
    rng = random.Random(f"{seed}/{split}")
    drawn = _draw(part, rng) if queries is None else iter(queries)
    seen: set[tuple[Fact, ...]] = set()
    made = misses = 0
    for query in drawn:
        if made >= n or misses > _MISSES:
            return
        misses += 1
        if query is None or query.facts in seen:
            log.rejected["no extension" if query is None else "seen before"] += 1
            continue
        if not part.facts.issuperset(query.facts):
            log.rejected["another split"] += 1
            continue
        if split == "test_relations" and not any(held_out(f.property) for f in query.facts):
            continue
        rows = _rows_of(part, whole, query, rng, split=split, decoys=decoys, edited=edited, log=log)
        if not rows:
            continue
        seen.add(query.facts)
        misses = 0
        for row in rows[: n - made]:
            made += 1
            log.rows[row.category, row.complexity] += 1
            yield row.model_copy(update={"id": f"{split}-{seed}-{made}"})


def _draw(graph: FactGraph, rng: random.Random) -> Iterator[Query | None]:
    while True:
        yield sample_query(graph, rng)


def _rows_of(
    part: FactGraph,
    whole: FactGraph,
    query: Query,
    rng: random.Random,
    *,
    split: Split,
    decoys: float,
    edited: float,
    log: BuildLog,
) -> list[CAQARow]:
    planned = plan(part, query, rng, edited=edited)
    if planned is None:
        log.rejected["no rival or no surroundings"] += 1
        return []
    query = planned.query
    rows: list[CAQARow] = []
    invented: list[Triple] = []
    for category in rng.sample(list(Category), len(Category)):
        linked = len(query.facts) > 1 and rng.random() < LINKED_SHARE
        flat = rng.random() < FLAT_SHARE
        draft = edit(planned, category, rng, linked=linked, decoys=rng.random() < decoys)
        if draft is None:
            continue
        if not consistent(planned, draft):
            log.rejected[f"inconsistent {category}"] += 1
            continue
        words = Wording(part, rng)
        facts = (*draft.core, *draft.noise)
        claimed = query.facts
        rows.append(
            CAQARow(
                id="",
                question=words.question(query),
                answer=words.answer(query, linked=linked),
                evidence=words.evidence(facts, flat=flat),
                triples=tuple(part.triple(fact) for fact in draft.core),
                noise=tuple(part.triple(fact) for fact in draft.noise),
                category=category,
                complexity=query.complexity,
                sub_facts=tuple(
                    SubFact(
                        text=sentence(part.triple(fact)),
                        triple=part.triple(fact),
                        supported=fact in draft.kept,
                    )
                    for fact in claimed
                ),
                supported=len(draft.kept),
                seeds=tuple(part.labels[key] for key in query.seeds),
                answers=tuple(part.labels[root.key] for root in query.roots),
                properties=tuple(dict.fromkeys(fact.property for fact in claimed)),
                split=split,
                base=query.base,
                extension=query.extension,
                edited=not whole.facts.issuperset((*facts, *claimed)),
                flat=flat,
            )
        )
        invented += [part.triple(fact) for fact in {*facts, *claimed} - whole.facts]
    if any(map(is_sensitive, invented)):
        # All rows of the query go: those that stay would tell their category by the property.
        log.rejected["false of a sensitive property"] += 1
        return []
    return rows
