"""Citations that a model wrote itself: right ones may not cost support, wrong ones may not gain it.

    python -m benchmarks.own_citations [--data DIR] [--graph people|other] [--most 30]
        [--property NAME] [--every]

Each fact becomes a sentence, which is judged by the facts of its subject: alone and with a citation
of the fact. The same sentence with the value of another property is judged alone, and with three
wrong citations: of the fact that it does not state, of a fact that was never given, and of the
fact under another subject's id. Model-free: which sentence is true is known by construction.

Facts are those of the people graph and, with ``--data``, of a graph about other things: what
TekGen's validation part says of films, planets, mountains and teams, by properties that the people
graph lacks, each among facts with the same property about four other subjects.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.data import exit_on_error, read_jsonl
from benchmarks.provenance import markdown, provenance
from benchmarks.verbalise import sentence
from benchmarks.verdicts.people import PERSONS
from guardrail import ANNOTATE, CheckRequest, Guardrail, GuardrailConfig, Triple
from guardrail.core.types import Citation, Sentence, Verdict
from guardrail.markers.grammar import render_marker
from kg import open_people_graph

__all__ = ["Case", "Row", "cases_of", "cited", "main", "other_facts", "people_facts", "rows_of"]

Facts = dict[str, list[tuple[Triple, tuple[Triple, ...]]]]
"""By property: facts, each with all facts that are given with it."""

OTHERS = 4
"""Other subjects whose facts are given with a fact of the other graph."""


class Case(NamedTuple):
    """A fact to state.

    Attributes:
        fact: The fact.
        given: All facts that are given.
        false: The fact with the value of another property; None if there is none to judge.
    """

    fact: Triple
    given: tuple[Triple, ...]
    false: Triple | None


class Row(NamedTuple):
    """Sentences of one property that count as supported.

    Attributes:
        property: The property.
        facts: True sentences.
        bare: Of these, supported without a citation.
        cited: Of these, supported with the right one.
        wrong: False sentences.
        wrong_bare: Of these, supported without a citation.
        wrong_cited: Of these, supported with a wrong one, the most of the three kinds.
        reported: Wrong citations that are reported, the fewest of the three kinds.
    """

    property: str
    facts: int
    bare: int
    cited: int
    wrong: int
    wrong_bare: int
    wrong_cited: int
    reported: int


def cited(text: str, *citations: Citation) -> str:
    """A sentence with citations before its full stop."""
    return f"{text.removesuffix('.')} {render_marker(citations)}."


def people_facts(seed: int) -> Facts:
    """Facts of the people graph by property, those of one person after the other."""
    graph = open_people_graph()
    ids = sorted(str(row[0]).rpartition("/")[2] for row in graph.query(PERSONS).rows if row[0])
    random.Random(seed).shuffle(ids)
    found: Facts = defaultdict(list)
    for person in graph.subgraphs(ids):
        for fact in person.triples:
            found[fact.property].append((fact, person.triples))
    return found


def other_facts(data: Path, seed: int) -> Facts:
    """Facts of TekGen's validation part by properties that the people graph lacks.

    Raises:
        InputError: The file is missing.
    """
    known = set(people_facts(seed))
    by_subject: dict[str, list[Triple]] = defaultdict(list)
    by_property: dict[str, list[Triple]] = defaultdict(list)
    for row in read_jsonl(data / "triples" / "tekgen_validation.jsonl.gz"):
        name, value = row["rel_label"].strip(), row["obj_label"]
        fact = Triple(row["sub_label"], name, value, subject_id=row["sub"])
        by_subject[row["sub"]].append(fact)
        if name not in known and fact not in by_property[name]:
            by_property[name].append(fact)
    rng = random.Random(seed)
    found: Facts = {}
    for name, facts in by_property.items():
        rng.shuffle(facts)
        found[name] = []
        for place, fact in enumerate(facts):
            near = [fact, *(facts[place - n - 1] for n in range(min(OTHERS, len(facts) - 1)))]
            given = [item for one in near for item in by_subject[one.subject_id or ""]]
            found[name].append((fact, tuple(dict.fromkeys(given))))
    return found


def cases_of(facts: Facts, most: int, seed: int) -> list[Case]:
    """At most so many facts of each property, the first third of them with a false twin."""
    rng = random.Random(seed)
    found = []
    for rows in facts.values():
        for place, (fact, given) in enumerate(rows[:most]):
            own = {
                item.value
                for item in given
                if (item.property, item.subject_id) == (fact.property, fact.subject_id)
            }
            others = sorted({item.value for item in given} - own - {fact.subject})
            false = None
            if others and place < max(1, most // 3):
                false = fact.model_copy(update={"value": f"{rng.choice(others)} II"})
            found.append(Case(fact, given, false))
    return found


def rows_of(guard: Guardrail, cases: Sequence[Case]) -> list[Row]:
    """One row for each property, in the order of their names."""

    def judged(texts: Iterable[tuple[str, tuple[Triple, ...]]]) -> list[Sentence]:
        requests = [CheckRequest(question="", answer=text, evidence=given) for text, given in texts]
        return [answer.sentences[0] for answer in guard.check_batch(requests)]

    found = []
    by_property: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        by_property[case.fact.property].append(case)
    for name, some in sorted(by_property.items()):
        true = [(sentence(case.fact), case) for case in some]
        bare = judged((text, case.given) for text, case in true)
        own = judged((cited(text, case.fact.citation), case.given) for text, case in true)
        pairs = [(case, case.false) for case in some if case.false is not None]
        false_bare = judged((sentence(false), case.given) for case, false in pairs)
        kinds = [
            judged((cited(sentence(false), each), case.given) for case, false, each in triples)
            for triples in zip(*(_wrong(case, false) for case, false in pairs), strict=True)
        ]
        found.append(
            Row(
                name, len(true), _supported(bare), _supported(own),
                len(pairs), _supported(false_bare), max(map(_supported, kinds), default=0),
                min((sum(bool(item.citation_errors) for item in one) for one in kinds), default=0),
            )
        )  # fmt: skip
        print(found[-1], file=sys.stderr, flush=True)
    return found


def _wrong(case: Case, false: Triple) -> list[tuple[Case, Triple, Citation]]:
    """The false sentence's three wrong citations."""
    elsewhere = false.model_copy(update={"subject_id": "Q0"})
    each = (case.fact.citation, false.citation, elsewhere.citation)
    return [(case, false, citation) for citation in each]


def _supported(found: Sequence[Sentence]) -> int:
    return sum(item.verdict is Verdict.SUPPORTED for item in found)


def total(rows: Sequence[Row], name: str) -> Row:
    """The sum of several rows."""
    return Row(name, *(sum(column) for column in list(zip(*rows, strict=True))[1:]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Judge sentences with their own citations.")
    parser.add_argument("--data", type=Path, help="the folder of public data; none: people alone")
    parser.add_argument("--most", type=int, default=30, help="facts of each property")
    parser.add_argument("--property", help="one property alone")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--every", action="store_true", help="a row for every property")
    parser.add_argument("--graph", choices=("people", "other"), help="one graph alone")
    options = parser.parse_args(arguments)
    graphs = {}
    if options.graph != "other":
        graphs["people graph"] = people_facts(options.seed)
    if options.data is not None and options.graph != "people":
        graphs["other graph"] = other_facts(options.data, options.seed)
    head = [
        "property", "true sentences", "supported, bare", "with the right citation",
        "false sentences", "supported, bare", "with a wrong citation", "reported",
    ]  # fmt: skip
    with Guardrail(GuardrailConfig(policy=ANNOTATE.changed(deadline_s=None))) as guard:
        for name, facts in graphs.items():
            if options.property:
                facts = {options.property: facts.get(options.property, [])}
                if not facts[options.property]:
                    continue  # a property of the other graph
            rows = rows_of(guard, cases_of(facts, options.most, options.seed))
            shown = [
                row
                for row in rows
                if options.every or row.cited < row.bare or row.wrong_cited > row.wrong_bare
                or row.property == "religion"
            ]  # fmt: skip
            shown.append(total(rows, f"all {len(rows)} properties"))
            origin = provenance(judge="onnx", seed=options.seed)
            print(markdown(origin, f"Own citations, {name}", head, [list(row) for row in shown]))
    return 0


if __name__ == "__main__":
    with exit_on_error():
        sys.exit(main())
