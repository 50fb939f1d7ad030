"""How well questions are linked to the graph, and namesakes distinguished.

    python -m benchmarks.linking --data DIR [--namesakes 5] [--seed 1] [--kg PATH]

``DIR/biokalma/questions.jsonl.gz`` holds the complex BioKaLMA questions with the ids of the
entities they were made from. A linked entity counts as right when it is listed or when its full
label is in the question. The measures are model-free. KaLMA reports a retrieval accuracy of
75.9.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, Store

from benchmarks.data import exit_on_error
from guardrail.core.errors import InputError
from guardrail.core.types import Candidate, Entity, LinkedEntity, Subgraph, Value
from kg import OxigraphGraph, open_graph
from kg.linking import EntityLinker
from kg.mentions import fold
from kg.reranking import TextIndex, rerank

__all__ = [
    "LinkingReport",
    "Question",
    "RankingReport",
    "exact_match",
    "measure_linking",
    "measure_ranking",
    "read_questions",
]

_NAME_PROPERTIES = ("given name", "surname", "family name")
_LABEL = NamedNode("http://www.w3.org/2000/01/rdf-schema#label")


class Question(Value):
    """One row of the benchmark: the complex question and the ids listed for it."""

    text: str
    ids: tuple[str, ...]


class WayReport(Value):
    """Entities linked in one way (``label``, ``relation``, …), and how many were right."""

    way: str
    linked: int
    right: int


class LinkingReport(Value):
    """Retrieval of the listed entities.

    Attributes:
        listed: Number of listed (question, entity) pairs.
        found: How many of them were linked.
        linked: Number of linked entities.
        right: How many of those are listed or named in the question by their full label.
        ways: The linked entities by the way they were found.
        milliseconds: Mean wall time per question, without the tagger.
        cpu_milliseconds: The same in processor time, which other programs do not lengthen.
    """

    name: str
    listed: int
    found: int
    linked: int
    right: int
    ways: tuple[WayReport, ...] = ()
    milliseconds: float | None = None
    cpu_milliseconds: float | None = None

    @property
    def recall(self) -> float:
        """Share of the listed entities that were linked."""
        return self.found / self.listed if self.listed else 0.0

    @property
    def precision(self) -> float:
        """Share of the linked entities that were right."""
        return self.right / self.linked if self.linked else 0.0


class RankingReport(Value):
    """How often the listed entity was ranked before its namesakes.

    Attributes:
        pairs: Number of (question, entity) pairs.
        first: Expected number ranked first where equal scores are ordered at random.
    """

    name: str
    pairs: int
    first: float

    @property
    def accuracy(self) -> float:
        """Share ranked first."""
        return self.first / self.pairs if self.pairs else 0.0


def read_questions(path: Path, field: str = "complex") -> list[Question]:
    """Read the benchmark's questions.

    Args:
        path: Gzipped JSON lines with ``simple``, ``complex`` and ``qids``.
        field: Which of the two forms of the question to take.

    Raises:
        InputError: If the file is missing or a row lacks a field.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        return [Question(text=row[field], ids=tuple(row["qids"])) for row in rows]
    except (OSError, KeyError, ValueError) as error:
        raise InputError(f"cannot read questions from {path}: {error!r}") from error


def exact_match(graph: OxigraphGraph, texts: Sequence[str]) -> list[list[LinkedEntity]]:
    """Link by exact labels alone, the most prominent node of each: the baseline."""
    linked = []
    for text in texts:
        mentions = graph.spot(text)
        groups = graph.find([mention.text for mention in mentions])
        links = {
            group[0].id: LinkedEntity(mention=mention, entity=group[0], matched="label")
            for mention, group in zip(mentions, groups, strict=True)
            if group
        }
        linked.append(list(links.values()))
    return linked


def measure_linking(
    name: str,
    questions: Sequence[Question],
    linked: Sequence[Sequence[LinkedEntity]],
    *,
    seconds: float | None = None,
    cpu_seconds: float | None = None,
) -> LinkingReport:
    """Score linked entities against the listed ones.

    Args:
        name: What was measured.
        questions: n questions.
        linked: For each its linked entities.
        seconds: Wall time spent on all of them.
        cpu_seconds: Processor time spent on all of them.
    """
    found = 0
    linked_by: Counter[str] = Counter()
    right_by: Counter[str] = Counter()
    for question, links in zip(questions, linked, strict=True):
        ids = {link.entity.id for link in links}
        found += sum(id_ in ids for id_ in question.ids)
        words = f" {fold(question.text)}"
        for link in links:
            way = link.matched.partition(":")[0]
            linked_by[way] += 1
            in_text = f" {fold(link.entity.label)}" in words
            right_by[way] += link.entity.id in question.ids or in_text
    return LinkingReport(
        name=name,
        listed=sum(len(question.ids) for question in questions),
        found=found,
        linked=linked_by.total(),
        right=right_by.total(),
        ways=tuple(
            WayReport(way=way, linked=count, right=right_by[way])
            for way, count in linked_by.most_common()
        ),
        milliseconds=None if seconds is None else 1000 * seconds / max(len(questions), 1),
        cpu_milliseconds=(
            None if cpu_seconds is None else 1000 * cpu_seconds / max(len(questions), 1)
        ),
    )


def measure_ranking(
    graph: OxigraphGraph, questions: Sequence[Question], *, namesakes: int, seed: int
) -> list[RankingReport]:
    """Rank each listed entity among namesakes: nodes of its label with the facts of others.

    The namesakes also take the place of those others as values, so that they have neighbours
    each way. Where scores are equal the expected share of a random order is counted.

    Args:
        graph: The graph the ids are of; left as it is.
        questions: The questions.
        namesakes: How many are added for each listed entity.
        seed: Seed of the choice of others.

    Returns:
        The paper's counting and this project's re-ranking, each with all neighbour values and
        without given names and surnames, which a real namesake would share.
    """
    known = {id_ for question in questions for id_ in question.ids}
    crowded, groups = _with_namesakes(graph, sorted(known), namesakes, random.Random(seed))
    reports = []
    for suffix, names in (("", True), (", names left out", False)):
        first = {True: 0.0, False: 0.0}
        pairs = 0
        for question in questions:
            listed = [groups[id_] for id_ in question.ids if id_ in groups]
            ids = [entity.id for group in listed for entity in group]
            subgraphs = {
                id_: subgraph if names else _without_names(subgraph)
                for id_, subgraph in zip(ids, crowded.subgraphs(ids), strict=True)
            }
            index, links = TextIndex(question.text), crowded.links(ids)
            pairs += len(listed)
            for plain in first:
                ranked = rerank(listed, index, subgraphs, links, plain=plain)
                for group, candidates in zip(listed, ranked, strict=True):
                    first[plain] += _share_of_first(group[0].id, candidates)
        reports += [
            RankingReport(name=f"exact-match counting{suffix}", pairs=pairs, first=first[True]),
            RankingReport(name=f"re-ranking{suffix}", pairs=pairs, first=first[False]),
        ]
    return reports


def _share_of_first(id_: str, candidates: Sequence[Candidate]) -> float:
    best = [c.entity.id for c in candidates if c.score == candidates[0].score]
    return (id_ in best) / len(best)


def _without_names(subgraph: Subgraph) -> Subgraph:
    kept = tuple(t for t in subgraph.triples if t.property not in _NAME_PROPERTIES)
    return subgraph.model_copy(update={"triples": kept})


def _with_namesakes(
    graph: OxigraphGraph, ids: Iterable[str], count: int, rng: random.Random
) -> tuple[OxigraphGraph, dict[str, list[Entity]]]:
    """Copy the graph with namesakes; give for each id the entity followed by its namesakes."""
    profile = graph.profile
    quads = list(graph.store)
    people = sorted(
        {q.subject for q in quads if q.predicate.value in profile.type},
        key=lambda node: node.value,
    )
    store = Store()
    store.bulk_extend(quads)
    members: dict[str, list[str]] = {}
    number = 0
    for id_ in ids:
        node = NamedNode(profile.iri(id_))
        label = graph.entities([id_])[0]
        if label is None:
            continue
        members[id_] = [id_]
        for other in rng.sample([person for person in people if person != node], count):
            number += 1
            namesake = NamedNode(profile.iri(f"Q{900_000_000 + number}"))
            members[id_].append(profile.short(namesake.value))
            store.add(Quad(namesake, _LABEL, Literal(label.label, language="en")))
            for quad in graph.store.quads_for_pattern(other, None, None, DefaultGraph()):
                if quad.predicate.value not in profile.names:
                    store.add(Quad(namesake, quad.predicate, quad.object))
            for quad in graph.store.quads_for_pattern(None, None, other, DefaultGraph()):
                store.add(Quad(quad.subject, quad.predicate, namesake))
    crowded = OxigraphGraph(store, profile=profile, name=f"{graph.name} with namesakes")
    groups = {
        id_: [entity for entity in crowded.entities(group) if entity is not None]
        for id_, group in members.items()
    }
    return crowded, groups


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both measurements from the command line and print them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with biokalma/")
    parser.add_argument("--kg", default=None, help="graph; the people graph where left out")
    parser.add_argument("--form", choices=("complex", "simple"), default="complex")
    parser.add_argument("--namesakes", type=int, default=5, help="0 to leave the ranking out")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    graph = open_graph(options.kg) if options.kg else open_graph()
    if not isinstance(graph, OxigraphGraph):
        parser.error("--kg must name an embedded graph")
    questions = read_questions(options.data / "biokalma" / "questions.jsonl.gz", options.form)
    for report in _linking_reports(graph, questions):
        _print_linking(report)
    if options.namesakes:
        print(f"\nright one first among {options.namesakes} namesakes, seed {options.seed}")
        for ranking in measure_ranking(
            graph, questions, namesakes=options.namesakes, seed=options.seed
        ):
            print(f"  {ranking.name:40} {ranking.accuracy:6.1%} of {ranking.pairs}")
    return 0


def _linking_reports(
    graph: OxigraphGraph, questions: Sequence[Question]
) -> Iterable[LinkingReport]:
    texts = [question.text for question in questions]
    yield measure_linking("exact labels", questions, exact_match(graph, texts))
    from kg.mentions import load_tagger

    docs = list(load_tagger().pipe(texts))
    linker = EntityLinker(graph)
    linker.link(texts, docs=docs)
    start, cpu_start = time.perf_counter(), time.process_time()
    # One by one, as questions arrive.
    linked = [linker.link([text], docs=[doc])[0] for text, doc in zip(texts, docs, strict=True)]
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    yield measure_linking("linker", questions, linked, seconds=seconds, cpu_seconds=cpu_seconds)


def _print_linking(report: LinkingReport) -> None:
    print(
        f"{report.name:13} recall {report.recall:6.1%} ({report.found}/{report.listed})  "
        f"precision {report.precision:6.1%} ({report.right}/{report.linked})"
    )
    if report.milliseconds is not None and report.cpu_milliseconds is not None:
        print(
            f"  {report.milliseconds:.2f} ms per question after warm-up, without the tagger "
            f"({report.cpu_milliseconds:.2f} ms of processor time)"
        )
        for way in report.ways:
            print(f"  {way.way:13} {way.linked:5} linked, {way.right / way.linked:6.1%} right")


if __name__ == "__main__":
    with exit_on_error():
        sys.exit(main())
