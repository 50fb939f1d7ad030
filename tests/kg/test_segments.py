"""Long files: segments, interruptions, and parts of dumps."""

from __future__ import annotations

import gzip
from contextlib import closing
from pathlib import Path

import pytest

import kg.segments
from guardrail.core.errors import KnowledgeGraphError
from kg import OxigraphGraph, Selection, load_graph, open_graph
from kg.blank_nodes import with_iris
from kg.names import NameParts

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
WD, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"


def lines(count: int) -> list[str]:
    return [
        f'<urn:n{n}> {LABEL} "Ana{n} \\"A\\" Smith{n}"@en .\n'
        f"<urn:n{n}> <urn:knows> <urn:n{n // 2}> .\n"
        for n in range(count)
    ]


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kg.segments, "SEGMENT", 1000)


@pytest.mark.usefixtures("small_segments")
def test_segments_hold_the_same_graph(tmp_path: Path) -> None:
    source = tmp_path / "a.nt.gz"
    source.write_bytes(gzip.compress("".join(lines(200)).encode()))
    report = load_graph(source, tmp_path / "g")
    assert report.added == 400
    assert report.peak_mb is None or report.peak_mb > 1
    graph = open_graph(tmp_path / "g")
    assert isinstance(graph, OxigraphGraph)
    assert [e.id for e in graph.find(['ana17 "a" smith17'])[0]] == ["urn:n17"]
    text = 'It was Ana199 "A" Smith199.'
    assert [mention.text for mention in graph.spot(text)] == ['Ana199 "A" Smith199']


@pytest.mark.usefixtures("small_segments")
def test_an_error_names_the_line_of_the_whole_file(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("".join(lines(100)) + "prose\n" + "".join(lines(100)))
    with pytest.raises(KnowledgeGraphError, match="line 201"):
        load_graph(tmp_path / "a.nt", tmp_path / "g")


@pytest.mark.usefixtures("small_segments")
def test_blank_nodes_stay_one_node(tmp_path: Path) -> None:
    text = (
        "".join(lines(50))
        + "_:x <urn:p> <urn:a> .\n"
        + "".join(lines(80))
        + "_:x <urn:p> <urn:b> .\n"
    )
    (tmp_path / "a.nt").write_text(text)
    load_graph(tmp_path / "a.nt", tmp_path / "g")
    graph = open_graph(tmp_path / "g")
    assert len(graph.query("SELECT DISTINCT ?s { ?s <urn:p> ?o }").rows) == 1
    assert graph.find(['Ana79 "A" Smith79'])[0]


BLANKS = f"""\
_:a.1 <urn:p> _:b .
\t_:a.1 {LABEL} "No _:b . of <urn:_:b> \\" _:b ." .
<urn:x_:b> <urn:p> _:b. # or _:b
_:b<urn:p>"_:b <urn:g> ." <urn:g> .
<urn:x> <urn:p> _:b _:c .\r
<urn:x> {LABEL} "Named Thing"@en .
<urn:x> <urn:p> _:ä"""


def test_blank_nodes_get_iris_and_nothing_else_does() -> None:
    found = with_iris((BLANKS + " .").encode(), "f").decode()
    assert found.splitlines(keepends=True) == [
        "<urn:blank:f:a.1> <urn:p> <urn:blank:f:b> .\n",
        f'<urn:blank:f:a.1> {LABEL} "No _:b . of <urn:_:b> \\" _:b ." .\n',
        "<urn:x_:b> <urn:p> <urn:blank:f:b>. # or _:b\n",
        '<urn:blank:f:b><urn:p>"_:b <urn:g> ." <urn:g> .\n',
        "<urn:x> <urn:p> <urn:blank:f:b> <urn:blank:f:c> .\r\n",
        f'<urn:x> {LABEL} "Named Thing"@en .\n',
        "<urn:x> <urn:p> <urn:blank:f:ä> .",
    ]


SOMEBODY = f"""\
<urn:ada> {LABEL} "Ada Lovelace"@en .
<urn:ada> <urn:knows> _:b .
<urn:ada> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> _:b .
_:b {LABEL} "Some Body"@en .
_:b <urn:knows> <urn:ada> .
_:b <urn:motto> "Nothing Ventured" .
"""


def test_blank_nodes_of_a_file_are_told_of_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(SOMEBODY)
    load_graph(tmp_path / "a.nt", tmp_path / "g")
    loaded, whole = open_graph(tmp_path / "g"), open_graph(tmp_path / "a.nt")
    told = loaded.query("ASK { <urn:ada> <urn:knows> ?b FILTER(STRSTARTS(STR(?b), 'urn:blank:')) }")
    assert told.boolean
    [[iri]] = loaded.query("SELECT (STR(?b) AS ?i) { <urn:ada> <urn:knows> ?b }").rows
    assert iri is not None
    for graph in (loaded, whole):
        assert isinstance(graph, OxigraphGraph)
        assert not graph.find(["Some Body"])[0]
        assert not graph.spot("It was Some Body.")
        [subgraph] = graph.subgraphs(["urn:ada"])
        [known] = subgraph.triples
        value = "Some Body (knows: Ada Lovelace; motto: Nothing Ventured)"
        assert (known.property, known.value, known.value_id) == ("knows", value, None)
        assert subgraph.incoming == subgraph.entity.types == ()
        assert graph.entities([iri.value]) == [None]
        assert NameParts(graph).facts_with(["Nothing Ventured"]) == [[]]
        assert graph.stats().entities == 1
        rows = graph.query("SELECT ?b { <urn:ada> <urn:knows> ?b }").rows
        assert [row[0].kind for row in rows if row[0]] == ["blank"]
    assert loaded.entities(["urn:ada"]) == whole.entities(["urn:ada"])


def test_files_share_no_blank_node_and_a_file_its_own(tmp_path: Path) -> None:
    for name, added in (("a", 6), ("b", 5), ("a", 0)):
        source = tmp_path / f"{name}.nt"
        if not source.exists():
            source.write_text(SOMEBODY)
        assert load_graph(source, tmp_path / "g").added == added
    graph = open_graph(tmp_path / "g")
    assert len(graph.query("SELECT ?b { <urn:ada> <urn:knows> ?b }").rows) == 2


def interrupted(source: Path, target: Path) -> None:
    """Load a file until Ctrl-C is pressed."""

    def press(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_graph(source, target, progress=press)


def test_an_interrupted_load_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "old.nt").write_text(f'<urn:old> {LABEL} "Old Name" .\n')
    (tmp_path / "a.nt").write_text("".join(lines(200)))
    interrupted(tmp_path / "a.nt", tmp_path / "g")
    assert not (tmp_path / "g").exists()
    load_graph(tmp_path / "old.nt", tmp_path / "g")
    interrupted(tmp_path / "a.nt", tmp_path / "g")
    with closing(OxigraphGraph.open(tmp_path / "g")) as graph:
        assert len(graph.store) == 1
        assert graph.find(["Old Name"])[0]
    assert load_graph(tmp_path / "a.nt", tmp_path / "g").added == 400
    graph = OxigraphGraph.open(tmp_path / "g")
    assert all(graph.find(["Old Name", 'Ana9 "A" Smith9']))
    assert not list(tmp_path.glob(".*"))


def test_two_loads_at_once_do_not_harm_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("".join(lines(20)))
    other = OxigraphGraph.open(tmp_path / ".g.loading", writable=True)
    with pytest.raises(KnowledgeGraphError):
        load_graph(tmp_path / "a.nt", tmp_path / "g")
    other.close()
    assert load_graph(tmp_path / "a.nt", tmp_path / "g").triples == 40


def test_the_profile_stays_with_the_graph(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text('<urn:x> <urn:called> "Ada Lovelace" ; .\n'.replace(" ;", ""))
    profile = tmp_path / "own.toml"
    profile.write_text('extends = "rdfs"\nname = "own"\nlabel = ["urn:called"]\n')
    load_graph(tmp_path / "a.nt", tmp_path / "g", profile=profile)
    profile.unlink()
    graph = open_graph(tmp_path / "g")
    assert graph.profile.name == "own"
    assert [entity.id for entity in graph.find(["Ada Lovelace"])[0]] == ["urn:x"]


DUMP = f"""\
<{WD}Q1> {LABEL} "Ada Lovelace"@en .
<{WD}Q1> {LABEL} "Ada Lovelace"@de-CH .
<{WD}Q1> {LABEL} "Ада Лавлейс"@ru .
<{WD}Q1> <{WDT}P31> <{WD}Q5> .
<{WD}Q1> <{WDT}P19> <{WD}Q2> .
<{WD}Q1> <{WDT}P569> "1815-12-10" .
<{WD}Q2> {LABEL} "London"@en .
<{WD}Q2> <{WDT}P31> <{WD}Q515> .
<{WD}P19> {LABEL} "place of birth"@en .
"""


@pytest.mark.parametrize(
    ("selection", "kept"),
    [
        (Selection(), 9),
        (Selection(languages=("en", "de")), 8),
        (Selection(properties=("P31", "P19")), 8),
        (Selection(classes=("Q5",)), 7),
        (Selection(languages=("en",), properties=("P19",), classes=("Q5",)), 3),
    ],
)
def test_a_part_of_a_wikidata_dump(tmp_path: Path, selection: Selection, kept: int) -> None:
    source = tmp_path / "latest-truthy.nt.gz"
    source.write_bytes(gzip.compress(DUMP.encode()))
    report = load_graph(source, tmp_path / "g", selection=selection)
    assert report.triples == kept
    assert open_graph(tmp_path / "g").find(["Ada Lovelace"])[0]
