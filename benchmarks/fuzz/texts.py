"""Targets that read files and texts: markers, graphs, tables, settings, rows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path

from hypothesis import strategies as st
from pyoxigraph import RdfFormat, Store

from benchmarks.fuzz.inputs import ANY_TEXT, Target, almost, json_values, repeated
from chains.gateway import GatewaySettings
from guardrail.config import GuardrailConfig, gateway_section
from guardrail.core.errors import GuardrailError
from guardrail.core.types import GuardedAnswer, Triple
from guardrail.lines import CheckRow, LineJob, json_line
from guardrail.log.entries import from_json
from guardrail.markers import grammar
from kg.load import read_graph
from kg.profiles import load_profile
from kg.tables import TableColumns, triples_of_table

__all__ = ["TEXTS"]

KNOWN = [Triple(subject="x", property="a", value="b; a; a; a")]


def _markers(text: str) -> None:
    for known in (None, KNOWN):
        parsed = grammar.parse(text, known)
        assert grammar.render(parsed) == text, "what was read is not what is written"
    grammar.parse(grammar.strip(text))


MARKER_TOKENS = (
    "[", "]", "[NA]", "[Q1, ", "[Q1, a: b]", "; ", ", ", ": ", "\\", "\\]", "[x, y", " \t", "\n",
    "[Q1, a: b; Q2, c: d]", "[1]", "[[", "x[0] = ", "é",
)  # fmt: skip
MARKED = ("She was a painter [Q212657, occupation: painter, place of birth: Rome] and rich [NA].",)


def _of_file(name: str, read: Callable[[Path], object]) -> Callable[[str], None]:
    """A target that reads a file of a name."""

    def run(text: str) -> None:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            path = Path(folder, name)
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
            with suppress(GuardrailError):
                read(path)

    return run


RDF_TOKENS = (
    "<urn:a>", "<", ">", '"', '"x"', "'''", '"""', "@en", "@", "^^", " .", "_:b", "\\u00e9", "\\",
    "\\U0010FFFF", "#", "\n", "[ ", " ]", "( ", " )", "a ", ";", ",", "@prefix x: <urn:x:> .\n",
    "<urn:a> <urn:b> <urn:c> .\n", "<urn:a> <urn:b> \"1\" .\n", "\x00", "{", "}", "1e", "<<", ">>",
)  # fmt: skip
NTRIPLES = '<urn:a> <urn:b> "1"@en .\n_:c <urn:d> "2"^^<urn:e> .\n<urn:a> <urn:b> <urn:c> .\n'
TURTLE = (
    '@prefix x: <urn:x:> .\nx:a a x:Person ; x:name \'Ann\'@en , """B\n""" ; '
    "x:knows [ x:name 1.5e3 ] ; x:list ( 1 true <b> ) .\n"
)
XML_TOKENS = (
    "<", ">", "/>", "</", "&", "&x;", "&#0;", "&#x10FFFF;", "<!--", "-->", "<![CDATA[", "]]>",
    "<!DOCTYPE rdf:RDF [", "<!ENTITY x \"y\">", "<?x ", "?>", "<rdf:Description>", "<x:p>",
    "</rdf:Description>", "</x:p>", ' rdf:about="a"', ' rdf:parseType="Literal"', " xmlns:y=''",
    ' rdf:parseType="Collection"', "\x00", "%y;", ' rdf:nodeID="a"', ' rdf:ID="a"',
)  # fmt: skip
XML_BEGIN = (
    '<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    'xmlns:x="urn:x:">'
)
XML_END = "</rdf:RDF>"
XML = f'{XML_BEGIN}<rdf:Description rdf:about="urn:a"><x:p>b</x:p></rdf:Description>{XML_END}'

CSV_TOKENS = (
    ",", ";", "\t", '"', '""', "\n", "\r", "\r\n", "id", "name", "\x00", "é", "|", "a,b\n",
    "\ufeff", '"a', "1,5", "[1, 2]", "{", "http://h.example/a b",
)  # fmt: skip
CSV = 'id,name,price,part\n1,"Fjell, 3",2490,2\n2,"a ""b""",,\n3,c,"x\ny",1\n'
COLUMNS = TableColumns(subject="id", label="name", name="t", links={"part": "t"})


def _table(text: str) -> None:
    content = text.encode("utf-8", "surrogatepass")
    for kind in ("csv", "tsv", "jsonl"):
        with suppress(GuardrailError):
            triples = b"".join(triples_of_table(BytesIO(content), Path(f"table.{kind}"), COLUMNS))
            Store().load(triples, RdfFormat.N_TRIPLES)  # raises where a line is none


TOML_TOKENS = (
    "[", "]", "[[", "]]", "=", '"', '"""', "'", "'''", "{", "}", ",", ".", "#", "\n", "\\u", "nan",
    "inf", "1e999", "0x", "1979-05-27", "true", "policy", "graph", "limits", "[gateway]\n",
    "deadline_s = ", "9" * 400, "a.", "[gateway.tenants.a]\n", "keys = []\n",
)  # fmt: skip
TOML = (
    """policy = "strict"
judge = "none"

[graph]
location = "none"

[limits]
sentences = 5

[gateway]
port = 8000
keys = ["a"]

[gateway.tenants.shop]
keys = ["b"]
per_minute = 5

[gateway.routes.one]
models = ["m"]
policy = "annotate"
""",
    'base = "rdfs"\nlabel = ["http://www.w3.org/2000/01/rdf-schema#label"]\n',
)


def _settings(path: Path) -> None:
    for read in (
        lambda: GuardrailConfig.from_toml(path, environ={}),
        lambda: GatewaySettings.from_env(environ={}, section=gateway_section(path)),
        lambda: load_profile(path),
    ):
        with suppress(GuardrailError):
            read()


LINE_TOKENS = (
    "{", "}", "[", "]", '"', ":", ",", "\n", "\\ud800", "\\u0000", "null", "NaN", "1e999",
    "9" * 400, '"id"', '"answer"', '"passages"', '"triples"', "{}\n", '[["a"]]', "\ud800",
)  # fmt: skip
LINES = (
    '{"id": "1", "question": "Who?", "answer": "Ann.", "passages": ["Ann is a writer."]}\n'
    '{"id": 2, "answer": "Ann.", "triples": [["Ann", "is", "a writer"]]}\n'
)
ROW_KEYS = ("id", "question", "answer", "passages", "evidence", "triples", "text", "title", "url")


def _lines(text: str) -> None:
    job = LineJob(CheckRow, lambda rows: [_echoed(row) for row in rows])
    lines = text.split("\n")
    results = list(job.results(lines))
    assert len(results) == sum(bool(line.strip()) for line in lines), "a row has no result"
    for result in results:
        json_line(result)
        assert "internal fault" not in str(result.get("error")), result
    for line in lines:
        with suppress(GuardrailError):
            from_json(line)


def _echoed(row: CheckRow) -> GuardedAnswer:
    """An answer with all that a row brings, as judging reads it."""
    return GuardedAnswer.model_construct(
        id=str(row.id), question=row.question, text=row.answer, evidence=row.items or ()
    )


_ROWS = st.dictionaries(
    st.sampled_from(ROW_KEYS), json_values(ROW_KEYS, ("Ann.", "\ud800")), max_size=5
).map(json.dumps)


def _graph(name: str, whole: str, tokens: tuple[str, ...], begin: str = "") -> Target:
    return Target(
        ANY_TEXT.map(begin.__add__) | almost([whole], tokens),
        _of_file(name, lambda path: read_graph(path).close()),
        lambda size: repeated(tokens, size, begin),
    )


TEXTS: dict[str, Target] = {
    "markers": Target(
        ANY_TEXT | almost(MARKED, MARKER_TOKENS) | st.text("[]\\, :;NAQ1ab\n \té", max_size=80),
        _markers,
        lambda size: repeated(MARKER_TOKENS, size),
    ),
    "ntriples": _graph("graph.nt", NTRIPLES, RDF_TOKENS),
    "turtle": _graph("graph.ttl", TURTLE, RDF_TOKENS),
    "rdfxml": _graph("graph.rdf", XML, XML_TOKENS, XML_BEGIN),
    "csv": Target(
        almost([CSV, LINES], CSV_TOKENS + LINE_TOKENS),
        _table,
        lambda size: repeated(CSV_TOKENS + LINE_TOKENS, size, "id,name,price\n"),
    ),
    "toml": Target(
        ANY_TEXT | almost(TOML, TOML_TOKENS),
        _of_file("settings.toml", _settings),
        lambda size: repeated(TOML_TOKENS, size, "x = "),
    ),
    "jsonlines": Target(
        almost([LINES], LINE_TOKENS) | _ROWS,
        _lines,
        lambda size: {**repeated(LINE_TOKENS, size), "one answer": _row("Ann is. ", size)},
    ),
}
"""By name."""


def _row(text: str, size: int) -> str:
    return json.dumps({"answer": text * (size // len(text))})
