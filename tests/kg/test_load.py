"""Loading files into graphs, and files that are not what they say."""

from __future__ import annotations

import bz2
import gzip
from contextlib import closing
from pathlib import Path

import pytest
from pyoxigraph import BlankNode

from guardrail.core.errors import KnowledgeGraphError
from kg import OxigraphGraph, Selection, load, load_graph, open_graph
from kg.load import read_graph
from kg.names import NameParts

from .conftest import PAINTERS

TRIPLES = """\
<urn:ada> <http://www.w3.org/2000/01/rdf-schema#label> "Ada Lovelace"@en .
<urn:ada> <urn:born> "1815-12-10"^^<http://www.w3.org/2001/XMLSchema#date> .
"""


@pytest.fixture
def two_files(tmp_path: Path) -> Path:
    """A folder with a file about a person, and one about painters."""
    (tmp_path / "a.nt").write_text(TRIPLES)
    (tmp_path / "b.ttl").write_text(PAINTERS)
    return tmp_path


def facts(graph: object, id_: str) -> list[str]:
    assert isinstance(graph, OxigraphGraph)
    return [triple.text for triple in graph.subgraphs([id_])[0].triples]


@pytest.mark.parametrize("packing", ["", ".gz", ".bz2"])
def test_ntriples_plain_and_packed(tmp_path: Path, packing: str) -> None:
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}[packing]
    source = tmp_path / f"ada.nt{packing}"
    source.write_bytes(pack(TRIPLES.encode()))
    seen: list[tuple[int, int]] = []
    report = load_graph(source, tmp_path / "g", progress=lambda read, of: seen.append((read, of)))
    assert (report.triples, report.added) == (2, 2)
    size = source.stat().st_size
    assert seen[-1] == (size, size)
    assert seen == sorted(seen)
    graph = open_graph(tmp_path / "g")
    assert facts(graph, "urn:ada") == ["Ada Lovelace, born: 1815-12-10."]
    # The same file opens without loading it first.
    assert facts(open_graph(source), "urn:ada") == ["Ada Lovelace, born: 1815-12-10."]


def test_two_files_into_one_graph_read_by_two(two_files: Path) -> None:
    target = two_files / "g"
    load_graph(two_files / "a.nt", target)
    report = load_graph(two_files / "b.ttl", target)
    assert report.triples == report.added + 2
    for graph in (open_graph(target), open_graph(target)):
        assert isinstance(graph, OxigraphGraph)
        assert graph.profile.name == "wikidata"
        assert len(graph.find(["Ada Lovelace"])[0]) == len(graph.find(["Rome"])[0]) == 1
        spotted = [mention.text for mention in graph.spot("In Rome, Ada Lovelace")]
        assert spotted == ["Rome", "Ada Lovelace"]
        assert graph.stats().triples == report.triples


def test_a_file_that_is_loaded_again_adds_nothing(tmp_path: Path) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    names = "".join(f'<urn:n{n}> {label} "Ana Smith{n % 5}"@en .\n' for n in range(20))
    (tmp_path / "a.nt").write_text(names)
    (tmp_path / "b.nt").write_text(f'<urn:n3> {label} "Ana Smith4"@en .\n')
    for name, added, names in (("a", 20, 20), ("a", 0, 20), ("b", 1, 21), ("a", 0, 21)):
        report = load_graph(tmp_path / f"{name}.nt", tmp_path / "g")
        assert report.added == added
        with closing(OxigraphGraph.open(tmp_path / "g")) as graph:
            assert len(graph.labels) == names
            bearers = {*range(4, 20, 5), *([3] if names == 21 else [])}
            found = {entity.id for entity in graph.find(["ana smith4"])[0]}
            assert found == {f"urn:n{n}" for n in bearers}


def test_readers_of_a_graph_keep_it_while_it_is_loaded(two_files: Path) -> None:
    target = two_files / "g"
    load_graph(two_files / "a.nt", target)
    before = OxigraphGraph.open(target)
    assert before.find(["Ada Lovelace"])[0]
    snapshot = before.snapshot
    load_graph(two_files / "b.ttl", target)
    assert before.find(["Ada Lovelace"])[0]
    assert not before.find(["Rome"])[0]
    with closing(OxigraphGraph.open(target)) as after:
        assert after.find(["Rome"])[0]
        assert after.snapshot != snapshot


def test_another_file_is_another_state(tmp_path: Path) -> None:
    source = tmp_path / "ada.nt"
    source.write_text(TRIPLES)
    before = open_graph(source).snapshot
    assert open_graph(source).snapshot == before
    source.write_text(TRIPLES.replace("1815", "1816"))
    after = open_graph(source).snapshot
    assert None not in (before, after)
    assert before != after
    text = OxigraphGraph.from_text(TRIPLES)
    assert text.snapshot == before
    text.store.clear()
    text.refresh()
    assert text.snapshot is None


def test_a_load_that_was_killed_while_the_graphs_changed_places_loses_none(two_files: Path) -> None:
    load_graph(two_files / "a.nt", two_files / "g")
    load_graph(two_files / "b.ttl", two_files / ".g.loading")
    # Killed when the graph had left its place and the new one had not taken it.
    (two_files / "g").rename(two_files / ".g.old")
    load_graph(two_files / "b.ttl", two_files / "g")
    with closing(OxigraphGraph.open(two_files / "g")) as graph:
        assert all(graph.find(["Ada Lovelace", "Rome"]))
    load_graph(two_files / "a.nt", two_files / ".g.old")  # killed before it removed the old one
    load_graph(two_files / "a.nt", two_files / "g")
    assert sorted(path.name for path in two_files.iterdir()) == ["a.nt", "b.ttl", "g"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.nt", b"<urn:a> <urn:b> <urn:c> .\nthis is prose\n", "line 2.*N-Triples"),
        ("a.ttl", b"<!DOCTYPE html><html>", "line 1.*Turtle"),
        ("a.nt", b"\x89PNG\r\n\x1a\n\x00\x00", "line 1"),
        ("a.nt.gz", gzip.compress(TRIPLES.encode() * 9)[:-12], "damaged or cut short"),
        ("a.docx", b"", "cannot tell the format"),
    ],
)
def test_what_is_not_rdf_is_named_by_line_and_leaves_the_graph_alone(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / "good.nt").write_text(TRIPLES)
    load_graph(tmp_path / "good.nt", tmp_path / "old")
    source = tmp_path / name
    source.write_bytes(content)
    for target in ("old", "new"):
        with pytest.raises(KnowledgeGraphError, match=message):
            load_graph(source, tmp_path / target)
    with pytest.raises(KnowledgeGraphError, match=message):
        open_graph(source)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["good.nt", "old", name])
    assert facts(open_graph(tmp_path / "old"), "urn:ada") == ["Ada Lovelace, born: 1815-12-10."]


def test_places_without_a_graph(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeGraphError, match="there is no graph"):
        open_graph(tmp_path / "nothing")
    with pytest.raises(KnowledgeGraphError, match="kg load"):
        open_graph(tmp_path)
    with pytest.raises(KnowledgeGraphError, match="no file"):
        load_graph(tmp_path / "nothing.nt", tmp_path / "g")
    (tmp_path / "a.nt").write_text(TRIPLES)
    with pytest.raises(KnowledgeGraphError, match="is no graph"):
        load_graph(tmp_path / "a.nt", tmp_path)


LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
WD, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"


def lines(count: int) -> list[str]:
    return [
        f'<urn:n{n}> {LABEL} "Ana{n} \\"A\\" Smith{n}"@en .\n'
        f"<urn:n{n}> <urn:knows> <urn:n{n // 2}> .\n"
        for n in range(count)
    ]


SOMEBODY = f"""\
<urn:ada> {LABEL} "Ada Lovelace"@en .
<urn:ada> <urn:knows> _:b .
<urn:ada> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> _:b .
_:b {LABEL} "Some Body"@en .
_:b <urn:knows> <urn:ada> .
_:b <urn:motto> "Nothing Ventured" .
<urn:ada> <urn:weight> _:c .
_:c <urn:kg> "54" .
"""


def test_blank_nodes_of_a_file_are_described_by_their_facts(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(SOMEBODY)
    load_graph(tmp_path / "a.nt", tmp_path / "g")
    loaded, whole = open_graph(tmp_path / "g"), open_graph(tmp_path / "a.nt")
    for graph in (loaded, whole):
        assert isinstance(graph, OxigraphGraph)
        assert not graph.find(["Some Body"])[0]
        assert not graph.spot("It was Some Body.")
        [subgraph] = graph.subgraphs(["urn:ada"])
        known, weight = subgraph.triples
        assert (weight.property, weight.value) == ("weight kg", "54")
        value = "Some Body (knows: Ada Lovelace; motto: Nothing Ventured)"
        assert (known.property, known.value, known.value_id) == ("knows", value, None)
        assert subgraph.incoming == subgraph.entity.types == ()
        assert NameParts(graph).facts_with(["Nothing Ventured"]) == [[]]
        assert graph.stats().entities == 1
        rows = graph.query("SELECT ?b { <urn:ada> <urn:knows> ?b }").rows
        assert [row[0].kind for row in rows if row[0]] == ["blank"]
    assert loaded.entities(["urn:ada"]) == whole.entities(["urn:ada"])


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
    (tmp_path / "a.nt").write_text('<urn:x> <urn:called> "Ada Lovelace" .\n')
    profile = tmp_path / "own.toml"
    profile.write_text('extends = "rdfs"\nname = "own"\nlabel = ["urn:called"]\n')
    load_graph(tmp_path / "a.nt", tmp_path / "g", profile=profile)
    profile.unlink()
    graph = open_graph(tmp_path / "g")
    assert graph.profile.name == "own"
    assert [entity.id for entity in graph.find(["Ada Lovelace"])[0]] == ["urn:x"]


BAD = f"""<urn:f> {LABEL} "Fjell" .
<urn:a b> {LABEL} "Tarn" .
<urn:g> {LABEL} "Berg" .
"""


@pytest.mark.parametrize("ending", [".nt", ".nq", ".ttl"])
def test_an_invalid_iri_is_named_and_can_be_skipped(tmp_path: Path, ending: str) -> None:
    source = tmp_path / f"a{ending}"
    source.write_text(BAD)
    with pytest.raises(KnowledgeGraphError, match=r"line 2.*<urn:a b>"):
        load_graph(source, tmp_path / "g")
    report = load_graph(source, tmp_path / "g", skip_invalid=True)
    assert (report.triples, report.skipped) == (2, 1)
    found = open_graph(tmp_path / "g").find(["Fjell", "Tarn", "Berg"])
    assert [[entity.id for entity in entities] for entities in found] == [["urn:f"], [], ["urn:g"]]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
@pytest.mark.parametrize("ending", [".nt", ".ttl"])
def test_a_file_in_utf_16_is_read(tmp_path: Path, ending: str, encoding: str) -> None:
    source = tmp_path / f"a{ending}"
    source.write_bytes(f'<urn:f> {LABEL} "Fjäll" .\n'.encode(encoding))
    assert load_graph(source, tmp_path / "g").triples == 1
    assert open_graph(tmp_path / "g").find(["Fjäll"])[0]


def test_another_encoding_is_named_and_nothing_is_offered_to_be_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_bytes(f'<urn:f> {LABEL} "Fjäll" .\n'.encode("latin-1"))
    with pytest.raises(KnowledgeGraphError, match="save it as UTF-8") as error:
        load_graph(tmp_path / "a.ttl", tmp_path / "g")
    assert "skip" not in str(error.value)


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


def test_segments_name_lines_of_the_file_and_keep_blank_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "_SEGMENT", 100)
    lines = [f"<u:{number}> <u:p> <u:{number + 1}> ." for number in range(50)]
    source = tmp_path / "graph.nt"
    source.write_text("\n".join([*lines, "_:b <u:p> <u:1> .", *lines, "_:b <u:q> <u:2> ."]))
    graph = read_graph(source)
    assert len(graph.store) == 52
    [bearer] = {quad.subject for quad in graph.store if isinstance(quad.subject, BlankNode)}
    assert len(list(graph.store.quads_for_pattern(bearer, None, None, None))) == 2
    name = '<u:{}> <http://www.w3.org/2000/01/rdf-schema#label> "Name {}" .'
    source.write_text(
        "\n".join([name.format(1, 1), *lines, "_:b <u:p> <u:1> .", name.format(2, 2)])
    )
    load_graph(source, tmp_path / "graph")
    found = open_graph(tmp_path / "graph").find(["Name 1", "Name 2"])
    assert [[entity.id for entity in entities] for entities in found] == [["u:1"], ["u:2"]]
    source.write_text("\n".join([*lines, "broken", *lines]))
    with pytest.raises(KnowledgeGraphError, match="line 51"):
        read_graph(source)
    source.write_text("\n".join([*lines, f'<u:1> <u:p> "{"x" * 300}" .', *lines]))
    with pytest.raises(KnowledgeGraphError, match=r"line 51: .*longer than 100 bytes"):
        read_graph(source)
