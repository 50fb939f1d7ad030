from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from pyoxigraph import Literal

from guardrail.core.errors import InputError
from guardrail.core.types import LinkedEntity, Mention
from kg import EntityLinker, OxigraphGraph
from kg.base import KnowledgeGraph, MentionIndex
from kg.mentions import load_tagger
from kg.relations import relation_words

PEOPLE: dict[int, tuple[str, dict[str, str | int]]] = {
    # id: (label, {property: value}); a value that is an id is a link.
    1: ("Artemisia Gentileschi", {"father": 2, "gender": "female", "born": "Rome"}),
    2: ("Orazio Gentileschi", {"child": 1, "gender": "male", "employer": "Marie de' Medici"}),
    3: ("John Wayne Gacy", {"surname": "Gacy", "born": "Chicago"}),
    4: ("Elizabeth Blackwell", {"occupation": "physician"}),
    5: ("Emily Blackwell", {"occupation": "physician"}),
    6: ("Bahram II", {"child": 7, "gender": "male"}),
    7: ("Bahram III", {"gender": "male"}),
    8: ("Éamon de Valera", {"born": "New York"}),
    9: ("John Green", {"occupation": "novelist", "born": "Indianapolis"}),
    10: ("John Green", {"occupation": "wrestler", "born": "Leeds"}),
    11: ("Dieter Burdenski", {"sport": "football"}),
    12: ("Fabian Burdenski", {"sport": "football"}),
    13: ("Freddie Jones", {"child": "Toby Jones", "gender": "male"}),
    14: ("Toni Braxton", {"instrument": "piano"}),
    15: ("Ada Jahan", {"gender": "female"}),
    16: ("Keri Lewis", {"spouse": 14}),
    17: ("Percy Bysshe Shelley", {"spouse": 18}),
    18: ("Mary Shelley", {"gender": "female"}),
    19: ("Anna Maria Luisa Rossi", {"born": "Rome"}),
    20: ("Anna Sofia Rossi", {"born": "Rome"}),
}
PROPERTIES = {
    "father": "P22", "child": "P40", "gender": "P21", "born": "P19", "surname": "P734",
    "spouse": "P26", "occupation": "P106", "employer": "P108", "sport": "P641",
    "instrument": "P1303",
}  # fmt: skip
LABELS = {"gender": "sex or gender", "born": "place of birth"}


def turtle() -> str:
    lines = [
        "@prefix wd: <http://www.wikidata.org/entity/> .",
        "@prefix wdt: <http://www.wikidata.org/prop/direct/> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
    ]
    for name, pid in PROPERTIES.items():
        lines.append(f'wd:{pid} rdfs:label "{LABELS.get(name, name)}"@en .')
    for number, (label, facts) in PEOPLE.items():
        lines.append(f'wd:Q{number} rdfs:label "{label}"@en ; wdt:P31 wd:Q5 .')
        for name, value in facts.items():
            written = f"wd:Q{value}" if isinstance(value, int) else f'"{value}"'
            lines.append(f"wd:Q{number} wdt:{PROPERTIES[name]} {written} .")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def graph() -> OxigraphGraph:
    return OxigraphGraph.from_text(turtle(), profile="wikidata")


@pytest.fixture(scope="module")
def linker(graph: OxigraphGraph) -> EntityLinker:
    return EntityLinker(graph)


def ways(linked: list[LinkedEntity]) -> dict[str, str]:
    return {link.entity.label: link.matched for link in linked}


def link(linker: EntityLinker, text: str) -> dict[str, str]:
    return ways(linker.link([text])[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where did Artemisia Gentileschi work?", {"Artemisia Gentileschi": "label"}),
        ("Where did Eamon de Valera grow up?", {"Éamon de Valera": "label"}),
        ("Which crimes did Gacy commit?", {"John Wayne Gacy": "partial name"}),
        ("What did Percy Shelley write?", {"Percy Bysshe Shelley": "partial name"}),
        ("Did Mary Shelley love Percy Shelley?",
         {"Mary Shelley": "label", "Percy Bysshe Shelley": "partial name"}),
        ("Who was Anna Rossi?", {}),  # two of them
        ("Who was Anna Luisa Rossi?", {"Anna Maria Luisa Rossi": "partial name"}),
        ("Who was Shelley Percy?", {}),
        ("What did Artemisia learn from Orazio Gentileschi?",
         {"Artemisia Gentileschi": "list", "Orazio Gentileschi": "label"}),
        ("What did Toni sing with Keri Lewis?",
         {"Toni Braxton": "partial name", "Keri Lewis": "label"}),
        ("What did Elizabeth and Emily Blackwell found?",
         {"Elizabeth Blackwell": "list", "Emily Blackwell": "label"}),
        ("Which clubs did the Burdenski family play for?",
         {"Dieter Burdenski": "partial name", "Fabian Burdenski": "partial name"}),
        ("What did Artemisia Gentileschi learn from her father?",
         {"Artemisia Gentileschi": "label", "Orazio Gentileschi": "relation: father"}),
        ("What did Orazio Gentileschi's daughter paint?",
         {"Orazio Gentileschi": "label", "Artemisia Gentileschi": "relation: daughter"}),
        ("Who succeeded Bahram II?",
         {"Bahram II": "label", "Bahram III": "relation: child (for successor)"}),
        ("Who was the son of Orazio Gentileschi?", {"Orazio Gentileschi": "label"}),
        ("Which tombs did Jahan build?", {}),  # only a part of "Ada Jahan", without more evidence
        ("Where does Toby Jones act?", {"Freddie Jones": "value: child"}),
    ],
)  # fmt: skip
def test_each_class_of_mention_says_how_it_was_found(
    linker: EntityLinker, text: str, expected: dict[str, str]
) -> None:
    assert link(linker, text) == expected


def test_namesakes_are_distinguished_and_the_decision_is_kept(linker: EntityLinker) -> None:
    [found] = linker.link(["Which prizes did John Green, the wrestler from Leeds, win?"])
    assert [link.entity.id for link in found] == ["Q10"]
    assert [c.entity.id for c in found[0].candidates] == ["Q10", "Q9"]
    assert found[0].candidates[0].matches == ("wrestler", "Leeds")


def test_a_batch_gives_what_single_calls_give(linker: EntityLinker) -> None:
    texts = ["Who succeeded Bahram II?", "", "Which crimes did Gacy commit?"]
    assert linker.link(texts) == [linker.link([text])[0] for text in texts]
    docs = list(load_tagger().pipe(texts))
    assert linker.link(texts, docs=docs) == linker.link(texts)
    assert linker.link([]) == []
    with pytest.raises(InputError, match="1 parsed documents for 2 texts"):
        linker.link(["a", "b"], docs=docs[:1])


def test_a_graph_without_label_index_links_by_tagger_and_capitals(graph: OxigraphGraph) -> None:
    """A graph that offers the protocol only, as a SPARQL endpoint does."""
    protocol = ("name", "find", "entities", "subgraphs", "links", "close")
    bare = SimpleNamespace(**{name: getattr(graph, name) for name in protocol})
    assert isinstance(bare, KnowledgeGraph)
    assert not isinstance(bare, MentionIndex)
    assert link(EntityLinker(bare), "Who was Artemisia Gentileschi's father?") == {
        "Artemisia Gentileschi": "label",
        "Orazio Gentileschi": "relation: father",
    }


@pytest.mark.parametrize(
    "text",
    ["", " \n", "\x00\x07 Gacy\x1b[31m", "[" * 10_000, "\ud800 Gacy", "İ ſon fatherİ", "'s 's"],
)
def test_any_text_is_read(linker: EntityLinker, text: str) -> None:
    for found in linker.link([text])[0]:
        assert isinstance(found.mention, Mention)


def test_a_long_text_is_read_in_time(linker: EntityLinker) -> None:
    # Past what the tagger reads, so that the label index must find it.
    text = "Her father and Some Other Name met. " * 28_000 + "Bahram II came last."
    assert len(text) > 1_000_000
    doc = load_tagger().make_doc(text[:100])
    start = time.process_time()
    [found] = linker.link([text], docs=[doc])
    assert "Bahram II" in ways(found)
    assert time.process_time() - start < 60


def test_relation_words_are_read_from_the_general_table() -> None:
    words = relation_words("Who succeeded him, and who were his parents' teachers?")
    assert [(word.mention.text, word.relation.name) for word in words] == [
        ("succeeded", "successor"),
        ("parents'", "parent"),
        ("teachers", "teacher"),
    ]
    for text in ("Who was Stephen Crane?", "Who were June Carter and Ezra Carter"):
        assert relation_words(text) == []


STRANGE = (
    "Ana64 Smith64", "order 66-a", "$uicideboy$", "!!!", "C++", "7-Eleven", "3M", ".NET", "q_17",
    "AT&T Inc.", "SKU-0042/B", "東京都", "नमस्ते दुनिया", "🦄 Corp", '"Weird Al" Yankovic', "naïve",
)  # fmt: skip


@pytest.mark.parametrize("label", STRANGE)
def test_a_label_of_any_characters_links(label: str) -> None:
    graph = OxigraphGraph.from_text(
        f"<urn:a> <http://www.w3.org/2000/01/rdf-schema#label> {Literal(label)} ; <urn:p> <urn:b> ."
    )
    [entities] = EntityLinker(graph).link([f"Tell me about {label}, please."])
    assert [link.entity.label for link in entities] == [label]
