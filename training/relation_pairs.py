"""Pairs that differ only in the relation: same subject, same value, another verb.

Texts that state facts teach a judge that subject and value make a fact; that *she left the firm*
is no word on who runs it, only sentences about the same two names can teach. Names come from the
data, sentences from short templates, so that no cue but the relation is left.
"""

from __future__ import annotations

import calendar
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.data import held_out, read_jsonl
from guardrail.core.types import Triple, linearise
from training.relation_templates import KINDS, RELATIONS, UNRELATED, Relation
from training.rows import Row, nli_row

__all__ = ["relation_rows"]

SOURCE: Final = "relation"

TRUE_SHARE = 0.45
"""Share of the rows whose sentence states the triple."""

UNSEEN_SHARE = 0.2
"""Share of the names that is kept for measuring."""

REVERSED_SHARE = 0.35
"""Share of the rows with the triple as premise and the sentence as hypothesis."""

BARE_SHARE = 0.2
"""Share of the hypotheses without their subject."""

MORE_FACTS = 3
"""Maximum number of other facts of the subject in a premise."""


class _Pair(NamedTuple):
    """Two names and their kinds."""

    subject: str
    value: str
    kinds: tuple[str, str]


def relation_rows(data: Path, *, rows: int, seed: int, unseen: bool = False) -> list[Row]:
    """Sentences with triples on the same two names, which they state or do not.

    Args:
        data: Folder with ``triples/``.
        rows: How many.
        seed: Seed of all choices.
        unseen: Draw names that the other rows never have.
    """
    rng = random.Random(f"{seed}/relation")
    names = {
        kind: [name for name in known if held_out(name, UNSEEN_SHARE, salt="relation") is unseen]
        for kind, known in _names(data, rng).items()
    }
    alike: dict[tuple[str, str], list[Relation]] = defaultdict(list)
    for relation in RELATIONS:
        alike[relation.kinds].append(relation)
    return [_row(rng, rng.choice(sorted(alike)), alike, names) for _ in range(rows)]


def _row(
    rng: random.Random,
    kinds: tuple[str, str],
    alike: Mapping[tuple[str, str], Sequence[Relation]],
    names: Mapping[str, Sequence[str]],
) -> Row:
    pair = _Pair(rng.choice(names[kinds[0]]), rng.choice(names[kinds[1]]), kinds)
    held = rng.choice(alike[kinds])
    true = rng.random() < TRUE_SHARE
    template = rng.choice(held.templates) if true else _other(rng, held, alike[kinds])
    if kinds[1] == "date" and not pair.value.isdigit() and pair.value[0].isdigit():
        template = template.replace(" in {o}", " on {o}")
    sentence = template.format(s=pair.subject, o=pair.value)
    sentence = sentence[:1].upper() + sentence[1:]
    triple = Triple(subject=pair.subject, property=rng.choice(held.labels), value=pair.value)
    label = "entailment" if true else "neutral"
    if rng.random() < REVERSED_SHARE:
        facts = [triple, *_more(rng, pair, held, alike, names)]
        rng.shuffle(facts)
        return nli_row(linearise(facts), sentence, label, SOURCE)
    bare = rng.random() < BARE_SHARE
    hypothesis = f"{triple.property}: {triple.value}" if bare else triple.text
    return nli_row(sentence, hypothesis, label, SOURCE)


def _other(rng: random.Random, held: Relation, alike: Sequence[Relation]) -> str:
    """A sentence on the same kinds of names that does not state a relation."""
    far = [
        item
        for item in alike
        if item.labels[0] not in {held.labels[0], *held.near} and held.labels[0] not in item.near
    ]
    pool = [template for item in far for template in item.templates]
    return rng.choice(UNRELATED[held.kinds] if not pool or rng.random() < 0.5 else pool)


def _more(
    rng: random.Random,
    pair: _Pair,
    held: Relation,
    alike: Mapping[tuple[str, str], Sequence[Relation]],
    names: Mapping[str, Sequence[str]],
) -> Iterator[Triple]:
    """Yield other facts of the subject, with other values."""
    alternatives = [kinds for kinds in alike if kinds[0] == pair.kinds[0] and kinds != pair.kinds]
    for _ in range(rng.randint(0, MORE_FACTS) if alternatives else 0):
        kinds = rng.choice(alternatives)
        relation = rng.choice(alike[kinds])
        value = rng.choice(names[kinds[1]])
        if value != pair.value and relation.labels != held.labels:
            yield Triple(subject=pair.subject, property=rng.choice(relation.labels), value=value)


def _names(data: Path, rng: random.Random) -> dict[str, list[str]]:
    """Names by kind, of the data's entities; dates, numbers and drugs are made up."""
    found: dict[str, set[str]] = defaultdict(set)
    for file, relation in (("pararel", "pid"), ("tekgen_train", "rel_label")):
        for raw in read_jsonl(data / "triples" / f"{file}.jsonl.gz"):
            for side, name in (("subject", raw["sub_label"]), ("value", raw["obj_label"])):
                for kind in KINDS.get((raw[relation], side), ()):
                    found[kind].add(name.strip())
    names = {kind: sorted(item for item in known if item) for kind, known in found.items()}
    names["date"] = [_date(rng) for _ in range(2_000)]
    names["number"] = [_number(rng) for _ in range(2_000)]
    names["drug"] = ["".join(_syllables(rng)).capitalize() for _ in range(600)]
    names["condition"] = list(CONDITIONS)
    places = names["place"]
    names["school"] = [rng.choice(SCHOOLS).format(rng.choice(places)) for _ in range(1_000)]
    names["structure"] = [f"{rng.choice(places)} {rng.choice(BUILDINGS)}" for _ in range(2_000)]
    return names


CONDITIONS: Final = (
    *("migraine", "nausea", "asthma", "fever", "insomnia", "anxiety", "hypertension", "dizziness"),
    *("diabetes", "arthritis", "acne", "epilepsy", "depression", "psoriasis", "vertigo"),
    *("fatigue", "headache", "gout", "anaemia", "malaria"),
)
BUILDINGS: Final = ("Bridge", "Tower", "Castle", "Hall", "Museum", "Dam", "Station", "Theatre")
SCHOOLS: Final = ("University of {}", "{} University", "{} Institute of Technology", "{} College")
SYLLABLES: Final = (
    *("zo", "re", "xa", "lu", "mi", "ta", "pen", "dor", "vi"),
    *("cal", "ne", "fo", "tri", "bex", "ol", "san", "ket", "ra"),
)


def _date(rng: random.Random) -> str:
    year = str(rng.randint(1780, 2023))
    if rng.random() < 0.6:
        return year
    month = rng.choice(calendar.month_name[1:])
    return f"{rng.randint(1, 28)} {month} {year}" if rng.random() < 0.6 else f"{month} {year}"


def _number(rng: random.Random) -> str:
    number = int(10 ** rng.uniform(0.5, 5.5))
    return f"{number:,}" if rng.random() < 0.7 else str(number)


def _syllables(rng: random.Random) -> list[str]:
    return rng.choices(SYLLABLES, k=rng.randint(2, 4))
