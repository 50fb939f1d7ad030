"""Names in running text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, Store

from kg import OxigraphGraph, load_profile
from kg.labels import LabelIndex, key_of, names_in, names_in_lines, spot

NAMES = {
    "urn:ada": ("Ada Lovelace", "Ada"), "urn:rose": ("Rose",), "urn:vincent": ("Vincent van Gogh",),
    "urn:sartre": ("Jean-Paul Sartre",), "urn:jean": ("Jean",),
    "urn:newells": ("Newell's Old Boys",), "urn:emile": ("Émile Zola",),
    "urn:henry": ("Henry Ford",), "urn:madox": ("Ford Madox",), "urn:rock": ("rock music",),
    "urn:skin": ("Skin check",), "urn:film": ("Home Alone",),
}  # fmt: skip
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"


INDEX = LabelIndex.build(
    [(iri, name) for iri, own in NAMES.items() for name in own], load_profile("rdfs")
)


def texts(text: str) -> list[str]:
    mentions = spot(text, INDEX, lambda iris: {iri: NAMES[iri] for iri in iris})
    assert all(text[mention.start : mention.end] == mention.text for mention in mentions)
    return [mention.text for mention in mentions]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Was Ada Lovelace a friend of Adam?", ["Ada Lovelace"]),
        ("Ada, Rose and Ada Lovelace.", ["Ada", "Rose", "Ada Lovelace"]),
        ("ada-lovelace@example.org Roses", []),
        ("Henry Ford Madox", ["Henry Ford", "Ford Madox"]),
        # possessives stay outside
        ("Ada Lovelace's and Rose’s notes", ["Ada Lovelace", "Rose"]),
        ("He played for Newell’s Old Boys.", ["Newell’s Old Boys"]),
        # capitals count
        ("The sun rose over a rose garden, ada", []),
        ("VINCENT VAN GOGH and Vincent Van Gogh", ["VINCENT VAN GOGH", "Vincent Van Gogh"]),
        ("Rock Music or rock music", ["Rock Music", "rock music"]),
        # in a question without any capital, full names count and single words do not
        ("did ada lovelace see a rose?", ["ada lovelace"]),
        # a name written as sentences begin needs no capital
        ("You pay 95 euros for a skin check.", ["skin check"]),
        ("A Skin check costs 95 euros. She was home alone.", ["Skin check"]),
        ("Jean-Paul Sartre, Jean-Luc and Jean", ["Jean-Paul Sartre", "Jean"]),
        ("Rose-like flowers", ["Rose"]),
        ("E\u0301mile Zola", ["E\u0301mile Zola"]),
        ("Ada\n  Lovelace", ["Ada\n  Lovelace"]),
    ],
)
def test_which_names_are_spotted(text: str, names: list[str]) -> None:
    assert texts(text) == names


def test_a_key_folds_white_space_and_apostrophes() -> None:
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


def test_names_read_from_lines_are_those_of_the_store() -> None:
    lines = "\n".join(
        [
            f'<urn:a> {LABEL} "Ada"@en .',
            f'<urn:b>{LABEL}"B\\u00e9a \\"B\\""@EN-gb . # a comment',
            f'\t<urn:c> {LABEL} "typed"^^<urn:t> .\r<urn:d> {LABEL} "after a carriage return" .\r',
            f'<urn:\\u00e9> {LABEL} "escaped" .',
            f'<urn:e> {LABEL} "fran\u00e7ais"@fr .',
            f'_:b {LABEL} "blank" .',
            f'<urn:f> <urn:p> "a \\"{LABEL}\\" of text" .',
            f'# <urn:g> {LABEL} "comment" .',
            f"<urn:h> {LABEL} <urn:i> .",
            f'<https://x.test/.well-known/genid/1> {LABEL} "unknown value" .',
            '<urn:j> <http://www.w3.org/2004/02/skos/core#altLabel> "alias" .',
            f'<urn:k> {LABEL} "no line end" .',
        ]
    ).encode()
    store, profile = Store(), load_profile("rdfs")
    store.bulk_load(input=lines, format=RdfFormat.N_TRIPLES)
    found = set(names_in_lines(lines, profile))
    assert found == set(names_in(store, profile))
    assert {("urn:b", 'B\u00e9a "B"'), ("urn:\u00e9", "escaped")} < found
    assert len(found) == 7
