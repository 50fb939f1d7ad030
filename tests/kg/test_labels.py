"""Names in running text."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from kg import OxigraphGraph, load_profile
from kg.label_file import FileLabelIndex, LabelFileWriter
from kg.labels import MemoryLabelIndex, key_of, spot

NAMES = {
    "urn:ada": ("Ada Lovelace", "Ada"),
    "urn:rose": ("Rose",),
    "urn:vincent": ("Vincent van Gogh",),
    "urn:sartre": ("Jean-Paul Sartre",),
    "urn:jean": ("Jean",),
    "urn:newells": ("Newell's Old Boys",),
    "urn:emile": ("Émile Zola",),
    "urn:henry": ("Henry Ford",),
    "urn:madox": ("Ford Madox",),
    "urn:rock": ("rock music",),
    "urn:skin": ("Skin check",),
    "urn:film": ("Home Alone",),
}
INDEX = MemoryLabelIndex((iri, name) for iri, names in NAMES.items() for name in names)


def texts(text: str) -> list[str]:
    mentions = spot(text, INDEX, lambda iri: NAMES[iri])
    assert all(text[mention.start : mention.end] == mention.text for mention in mentions)
    return [mention.text for mention in mentions]


def test_longest_name_at_word_boundaries() -> None:
    assert texts("Was Ada Lovelace a friend of Adam?") == ["Ada Lovelace"]
    assert texts("Ada, Rose and Ada Lovelace.") == ["Ada", "Rose", "Ada Lovelace"]
    assert texts("ada-lovelace@example.org Roses") == []
    assert texts("Henry Ford Madox") == ["Henry Ford", "Ford Madox"]


def test_possessives_stay_outside() -> None:
    assert texts("Ada Lovelace's and Rose’s notes") == ["Ada Lovelace", "Rose"]
    assert texts("He played for Newell’s Old Boys.") == ["Newell’s Old Boys"]


def test_capitals_count() -> None:
    assert texts("The sun rose over a rose garden, ada") == []
    assert texts("VINCENT VAN GOGH and Vincent Van Gogh") == [
        "VINCENT VAN GOGH",
        "Vincent Van Gogh",
    ]
    assert texts("Rock Music or rock music") == ["Rock Music", "rock music"]
    # A question typed without any capital: full names still count, single words do not.
    assert texts("did ada lovelace see a rose?") == ["ada lovelace"]


def test_a_name_written_as_sentences_begin_needs_no_capital() -> None:
    assert texts("You pay 95 euros for a skin check.") == ["skin check"]
    assert texts("A Skin check costs 95 euros. She was home alone.") == ["Skin check"]


def test_hyphens_and_accents() -> None:
    assert texts("Jean-Paul Sartre, Jean-Luc and Jean") == ["Jean-Paul Sartre", "Jean"]
    assert texts("Rose-like flowers") == ["Rose"]
    assert texts("E\u0301mile Zola") == ["E\u0301mile Zola"]


def test_white_space_within_names() -> None:
    assert texts("Ada\n  Lovelace") == ["Ada\n  Lovelace"]
    assert key_of("  Ada   Lovelace ") == "ada lovelace"
    assert key_of("O’Neil") == key_of("o'neil")


@given(st.text())
def test_any_text_is_safe(text: str) -> None:
    for name in texts(text):
        assert key_of(name) in {key_of(known) for names in NAMES.values() for known in names}


@given(st.text(alphabet="aB9_ é-'.", max_size=12))
def test_plain_names_have_the_same_key_as_in_a_longer_text(name: str) -> None:
    assert f"{key_of(name)} ?".strip() == key_of(f"{name} ?").strip()


@given(st.lists(st.sampled_from([name for names in NAMES.values() for name in names]), max_size=6))
def test_every_name_written_out_is_found(names: list[str]) -> None:
    assert texts(" ; ".join(names)) == names


@given(st.lists(st.sampled_from(["ada", "lovelace", "Ada", "Rose", "rose", "Ford", "Henry", "x"])))
def test_memory_and_stored_index_agree(words: list[str]) -> None:
    text = " ".join(words)
    assert spot(text, STORED, lambda iri: NAMES[iri]) == spot(text, INDEX, lambda iri: NAMES[iri])


def _stored() -> FileLabelIndex:
    with TemporaryDirectory() as folder:
        writer = LabelFileWriter(Path(folder), load_profile("rdfs"), keep=False)
        writer.add((iri, name) for iri, names in NAMES.items() for name in names)
        writer.finish()
        return FileLabelIndex(Path(folder))


STORED = _stored()


def test_long_text_takes_linear_time() -> None:
    for piece in ("Ada Lovelace's rose. ", "["):
        text = (piece * 1_000_000)[:1_000_000]
        started = time.process_time()
        texts(text)
        assert time.process_time() - started < 10


def test_classes_and_properties_are_not_spotted() -> None:
    graph = OxigraphGraph.from_text("""
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        <urn:ada> a <urn:Human> ; rdfs:label "Ada Lovelace" ; <urn:knows> <urn:mary> .
        <urn:mary> a <urn:Human> ; rdfs:label "Mary Somerville" .
        <urn:Human> rdfs:label "Human" .
        <urn:knows> rdfs:label "Knows" .
    """)
    spotted = graph.spot("Human Knows: Ada Lovelace, Mary Somerville")
    assert [mention.text for mention in spotted] == ["Ada Lovelace", "Mary Somerville"]
