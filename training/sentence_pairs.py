"""Pairs of natural sentences and triples, from TekGen and DART: both directions, three labels."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.data import held_out, read_jsonl
from guardrail.core.types import Triple, linearise
from training.data import Split
from training.forms import mentions, near_miss, same_value
from training.relations import readable, single_valued
from training.rows import Row, nli_row, without_overlap

__all__ = ["load_dart", "load_tekgen", "statement"]

DART_SHARE = 0.2
"""Share of DART's subjects held out."""


def statement(triple: Triple, rng: random.Random) -> str:
    """A triple as a hypothesis: with its subject, or the bare ``relation: value``."""
    if rng.random() < 0.5:
        return triple.text
    return f"{triple.property}: {triple.value}"


# --- TekGen: sentence -> triple ------------------------------------------------------------


def load_tekgen(data: Path, *, seed: int) -> Split:
    """Sentence-triple pairs; subjects of the validation file are not trained on.

    Args:
        data: Folder with ``triples/``.
        seed: Seed of all choices.
    """
    rng = random.Random(f"{seed}/tekgen")
    held = list(_aligned(data / "triples" / "tekgen_validation.jsonl.gz"))
    subjects = {triple.subject_id for triple, _ in held}
    texts = {sentence for _, sentence in held}
    used = [
        (triple, sentence)
        for triple, sentence in _aligned(data / "triples" / "tekgen_train.jsonl.gz")
        if triple.subject_id not in subjects and sentence not in texts
    ]
    train = [
        *_sentence_to_triple(used, rng, "tekgen"),
        *_sentence_to_triple(used, rng, "tekgen"),
        *_triple_to_sentence(used, rng, "tekgen_reverse"),
    ]
    validation = list(_sentence_to_triple(held, rng, "tekgen"))
    return Split(without_overlap(train, ()), validation)


def _aligned(path: Path) -> Iterator[tuple[Triple, str]]:
    for raw in read_jsonl(path):
        triple = Triple(
            subject=raw["sub_label"].strip(),
            property=raw["rel_label"].strip(),
            value=raw["obj_label"].strip(),
            subject_id=raw["sub"],
        )
        yield triple, " ".join(raw["sent"].split())


def _sentence_to_triple(
    aligned: Sequence[tuple[Triple, str]], rng: random.Random, source: str
) -> Iterator[Row]:
    """For each sentence its triple, the triple with another value, and one it does not state."""
    by_property: dict[str, list[Triple]] = defaultdict(list)
    stated: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for triple, sentence in aligned:
        by_property[triple.property].append(triple)
        stated[sentence].add((triple.property, triple.value))
    known = {(t.subject_id, t.property, t.value) for t, _ in aligned}
    properties = sorted(by_property)
    for triple, sentence in aligned:
        yield nli_row(sentence, statement(triple, rng), "entailment", source)
        other = _swapped(triple, by_property[triple.property], rng)
        if other is not None and not mentions(sentence, other.value):
            if single_valued(triple.property):
                yield nli_row(sentence, statement(other, rng), "contradiction", source)
            elif (other.subject_id, other.property, other.value) not in known:
                hypothesis = statement(other, rng)
                yield nli_row(sentence, hypothesis, "neutral", source, neutral="irrelevant")
        unstated = _unstated(triple, by_property, properties, rng)
        if not mentions(sentence, unstated.value):
            yield nli_row(sentence, unstated.text, "neutral", source, neutral="irrelevant")


def _swapped(triple: Triple, alike: Sequence[Triple], rng: random.Random) -> Triple | None:
    """The triple with a value of the same relation, or a near miss of its own."""
    changed = near_miss(triple.value, rng) if rng.random() < 0.6 else None
    for _ in range(8):
        value = changed or rng.choice(alike).value
        if not same_value(value, triple.value):
            return triple.model_copy(update={"value": value})
        changed = None
    return None


def _unstated(
    triple: Triple,
    by_property: dict[str, list[Triple]],
    properties: Sequence[str],
    rng: random.Random,
) -> Triple:
    """Another relation of the subject, or the fact of another subject."""
    if rng.random() < 0.6:
        name = rng.choice([p for p in properties if p != triple.property] or list(properties))
        other = rng.choice(by_property[name])
        return other.model_copy(update={"subject": triple.subject, "subject_id": triple.subject_id})
    return rng.choice(by_property[triple.property])


def _triple_to_sentence(
    aligned: Sequence[tuple[Triple, str]], rng: random.Random, source: str
) -> Iterator[Row]:
    """A triple as premise of its sentence: most sentences say more than the triple."""
    for triple, sentence in aligned:
        words = len(re.findall(r"\w+", sentence))
        if words > 14 + len(triple.value.split()) and rng.random() < 0.4:
            label = ("neutral", "partially_supportive")
            yield nli_row(triple.text, sentence, label[0], source, neutral=label[1])


# --- DART: triples -> sentence -------------------------------------------------------------


def load_dart(data: Path, *, seed: int) -> Split:
    """Triples-sentence pairs, split by the subject of the first triple.

    Args:
        data: Folder with ``triples/``.
        seed: Seed of all choices.
    """
    rng = random.Random(f"{seed}/dart")
    parts: tuple[list[tuple[list[Triple], list[str]]], ...] = ([], [])
    for raw in read_jsonl(data / "triples" / "dart_dev.jsonl.gz"):
        triples = [Triple(subject=_plain(s), property=readable(p), value=_plain(o))
                   for s, p, o in raw["triples"] if readable(p) and _plain(o)]  # fmt: skip
        if triples:
            unseen = held_out(triples[0].subject, DART_SHARE, salt="dart")
            if unseen or "webnlg" not in raw["source"].casefold():  # not free to train on
                parts[unseen].append((triples, raw["texts"][:6]))
    train, validation = (list(_triples_to_sentence(part, rng)) for part in parts)
    return Split(
        without_overlap(train, validation, texts=lambda row: (row.hypothesis,)), validation
    )


def _triples_to_sentence(
    entries: Iterable[tuple[list[Triple], list[str]]], rng: random.Random
) -> Iterator[Row]:
    entries = list(entries)
    values: dict[str, list[str]] = defaultdict(list)
    for triples, _ in entries:
        for triple in triples:
            values[triple.property].append(triple.value)
    for triples, texts in entries:
        for text in texts[: 3 if len(triples) > 2 else 6]:
            rng.shuffle(triples)
            yield nli_row(linearise(triples), text, "entailment", "dart")
            stated = [t for t in triples if mentions(text, t.value)]
            if stated:
                yield from _wrong_value(triples, rng.choice(stated), text, values, rng)
                yield from _missing(triples, rng.choice(stated), text, rng)


def _wrong_value(
    triples: list[Triple],
    changed: Triple,
    text: str,
    values: dict[str, list[str]],
    rng: random.Random,
) -> Iterator[Row]:
    """The premise states another value of a single-valued relation than the text."""
    several = sum((t.subject, t.property) == (changed.subject, changed.property) for t in triples)
    numeric = bool(re.search(r"\d", changed.value))
    if several > 1 or not (numeric or single_valued(changed.property)):
        return
    value = near_miss(changed.value, rng) if numeric and rng.random() < 0.6 else None
    value = value or rng.choice(values[changed.property])
    if same_value(value, changed.value) or mentions(text, value):
        return
    premise = [t.model_copy(update={"value": value}) if t is changed else t for t in triples]
    yield nli_row(linearise(premise), text, "contradiction", "dart")


def _missing(
    triples: list[Triple], dropped: Triple, text: str, rng: random.Random
) -> Iterator[Row]:
    """The premise lacks a fact that the text states."""
    if dropped.value in {"yes", "no"}:
        return
    rest = [t for t in triples if t is not dropped]
    if any(same_value(t.value, dropped.value) or mentions(t.subject, dropped.value) for t in rest):
        return
    if rest:
        premise = linearise(rest)
        kept = any(mentions(text, t.value) for t in rest)
        known = "partially_supportive" if kept else None
        yield nli_row(premise, text, "neutral", "dart", neutral=known)


def _plain(text: str) -> str:
    return " ".join(text.replace("_", " ").strip('"').split())
