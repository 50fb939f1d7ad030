"""Files that are made to fill memory or time are refused, and say why."""

import gzip
import time

import pytest
from pyoxigraph import Store

from guardrail.core import rows
from guardrail.core.errors import KnowledgeGraphError
from kg import reading as reading_module
from kg.reading import reading

HEAD = (
    '<?xml version="1.0"?>\n{doctype}'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="urn:x:">{body}'
)
FACT = '<rdf:Description rdf:about="urn:a"><x:p>{value}</x:p></rdf:Description>'


def loaded(path):
    store = Store()
    with reading(path, None) as stream:
        store.load(stream, reading_module.format_of(path))
    return len(store)


def written(tmp_path, doctype="", body="", end="</rdf:RDF>"):
    path = tmp_path / "graph.rdf"
    path.write_text(HEAD.format(doctype=doctype, body=body) + end, encoding="utf-8")
    return path


def test_entities_of_short_text_are_read(tmp_path):
    doctype = '<!DOCTYPE rdf:RDF [<!ENTITY ex "http://example.org/">]>\n'
    assert loaded(written(tmp_path, doctype, FACT.format(value="&ex;a"))) == 1


@pytest.mark.parametrize(
    "entities",
    [
        "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "ha" * 10}">' for n in range(9)),
        f'<!ENTITY e8 "{"x" * 100_000}">',
        '<!ENTITY e8 SYSTEM "file:///etc/passwd">',
    ],
    ids=["of entities", "long", "from a file"],
)
def test_entities_that_grow_are_refused(tmp_path, entities):
    doctype = f"<!DOCTYPE rdf:RDF [{entities}]>\n"
    with pytest.raises(KnowledgeGraphError, match="entity 'e"):
        loaded(written(tmp_path, doctype, FACT.format(value="&e8;")))


def test_elements_that_are_too_deep_or_cut_short_are_refused_and_soon(tmp_path):
    begun = time.process_time()
    for body, message in (
        ("<rdf:Description><x:p>" * 100_000, "nest over"),
        (FACT.format(value="1"), "not RDF_XML"),
    ):
        with pytest.raises(KnowledgeGraphError, match=message):
            loaded(written(tmp_path, body=body, end=""))
    assert time.process_time() - begun < 10.0


def test_what_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "LEAST_REFUSED", 1 << 20)
    path = tmp_path / "graph.nt.gz"
    path.write_bytes(gzip.compress(b"# nothing\n" * 1_000_000))
    with pytest.raises(KnowledgeGraphError, match="times its size"):
        loaded(path)


def test_what_is_packed_well_is_read(tmp_path):
    path = tmp_path / "graph.nt.gz"
    lines = "".join(f'<urn:s{n}> <urn:p> "{n}" .\n' for n in range(10_000))
    path.write_bytes(gzip.compress(lines.encode()))
    assert loaded(path) == 10_000
