"""The SPARQL queries of all back ends, and the differences of servers from the standard.

Sources, by server:

- QLever: https://github.com/ad-freiburg/qlever/pull/1162 (a time limit above the server's own is
  refused), https://github.com/ad-freiburg/qlever/issues/194 (``LANG(?x) = "en"`` has an index,
  ``langMatches`` none), https://github.com/ad-freiburg/qlever/blob/master/docs/sparql_plus_text.md
- Virtuoso: https://github.com/openlink/virtuoso-opensource/blob/develop/7/README.ANYTIME.md
  (milliseconds, at least a second; truncated results are marked ``S1TAT`` or 206),
  https://docs.openlinksw.com/virtuoso/rdfsparqlrulefulltext/
- Blazegraph: https://github.com/blazegraph/database/wiki/REST_API (the header of the time limit;
  a single type in ``Accept``), https://github.com/blazegraph/database/wiki/FullTextSearch
- GraphDB: https://rdf4j.org/documentation/reference/rest-api/ (whole seconds),
  https://graphdb.ontotext.com/documentation/10.1/full-text-search.html
- Wikidata's label service, on Blazegraph:
  https://www.mediawiki.org/wiki/Wikidata_Query_Service/User_Manual
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from guardrail.core.errors import ConfigError
from guardrail.core.types import Value
from kg.profiles import Profile
from kg.terms import WIKIBASE, quote_iri, quote_literal, values

NAMESAKES = 100
"""Namesakes that are read for one label; more than a person could tell apart."""


class Dialect(Value):
    """Parameters of one server.

    Attributes:
        timeout: Parameter of the time limit; None if there is none.
        timeout_header: Header of the time limit; None if there is none.
        timeout_unit_s: Unit of the time limit in seconds; it is rounded up to whole units.
        timeout_least: Smallest time limit in units.
        lang_matches: True if ``LANGMATCHES`` is as fast as ``LANG(?x) = "en"``; otherwise texts in
            ``en-GB`` are not read for ``en``.
        label_service: True if it has Wikidata's label service, for profiles that use it.
        text_search: Pattern that binds ``?{variable}`` to literals with all words ``{words}``, by
            the server's text index; None if it has none.
        words: Format of each ``{word}`` in that pattern.
        paths: Parts of the paths of its endpoints.
    """

    name: str
    timeout: str | None = None
    timeout_header: str | None = None
    timeout_unit_s: float = 1.0
    timeout_least: int = 1
    accept: str = "application/sparql-results+json, application/json;q=0.9"
    accept_graph: str = "text/turtle, application/n-triples;q=0.9, application/x-turtle;q=0.8"
    lang_matches: bool = True
    label_service: bool = False
    text_search: str | None = None
    words: str = "{word}"
    between_words: str = " "
    hosts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def units(self, timeout_s: float) -> str:
        """A time limit as the server expects it."""
        return str(max(self.timeout_least, math.ceil(timeout_s / self.timeout_unit_s)))

    def literals_with(self, variable: str, text: str) -> str | None:
        """The pattern for literals with all words of a text; None if there is none."""
        words = re.findall(r"[^\W_]+", text)
        if self.text_search is None or not words:
            return None
        joined = self.between_words.join(self.words.format(word=word) for word in words)
        return self.text_search.format(variable=variable, words=quote_literal(joined))


DIALECTS: Final = {
    dialect.name: dialect
    for dialect in (
        Dialect(name="standard"),
        Dialect(
            name="qlever",
            lang_matches=False,
            text_search="?text "
            "<http://qlever.cs.uni-freiburg.de/builtin-functions/contains-entity> ?{variable} ; "
            "<http://qlever.cs.uni-freiburg.de/builtin-functions/contains-word> {words} .",
            hosts=("qlever.cs.uni-freiburg.de", "qlever.dev"),
        ),
        Dialect(
            name="virtuoso",
            timeout="timeout",
            timeout_unit_s=0.001,
            timeout_least=1000,
            text_search="?{variable} <bif:contains> {words} .",
            words="'{word}'",
            between_words=" AND ",
            hosts=("dbpedia.org",),
        ),
        Dialect(
            name="blazegraph",
            timeout_header="X-BIGDATA-MAX-QUERY-MILLIS",
            timeout_unit_s=0.001,
            accept="application/sparql-results+json",
            accept_graph="application/x-turtle",
            label_service=True,
            text_search="?{variable} <http://www.bigdata.com/rdf/search#search> {words} ; "
            '<http://www.bigdata.com/rdf/search#matchAllTerms> "true" .',
            hosts=tuple(
                f"{name}.wikidata.org" for name in ("query", "query-main", "query-scholarly")
            ),
            paths=("/blazegraph/", "/bigdata/"),
        ),
        Dialect(
            name="graphdb",
            timeout="timeout",
            text_search='?{variable} <http://www.ontotext.com/fts> ({words} "*") .',
            between_words=" AND ",
            paths=("/repositories/",),
        ),
    )
}
"""Dialects by name."""


def dialect_of(url: str, profiled: str | None) -> Dialect:
    """The dialect of an endpoint, by its address, else its profile; raises ConfigError."""
    parts = urlsplit(url)
    dialects = DIALECTS.values()
    by_host = [d.name for d in dialects if parts.hostname in d.hosts]
    by_path = [d.name for d in dialects if any(path in parts.path for path in d.paths)]
    name = next(iter([*by_host, *by_path]), profiled) or "standard"
    if name not in DIALECTS:
        raise ConfigError(f"no SPARQL dialect {name!r}; choose one of {', '.join(DIALECTS)}")
    return DIALECTS[name]


class QueryWriter:
    """Writes the queries of one profile; every name and id in them is escaped or checked."""

    def __init__(self, profile: Profile, dialect: Dialect = DIALECTS["standard"]) -> None:
        self._profile, self._dialect = profile, dialect
        classes = sorted({profile.iri(id_) for ids in profile.ner.values() for id_ in ids})
        named = classes and profile.type and profile.subclass
        self._classes = values("v", classes) if named else ""
        self._wider = f"({'|'.join(map(quote_iri, profile.subclass))})+"

    def find(self, labels: Sequence[str]) -> str:
        """Nodes ``?e`` that bear the name of number ``?q``, in any of its usual spellings."""
        languages = (*self._profile.tags, "")
        rows = " ".join(
            f"({number} {quote_literal(form, language)})"
            for number, label in enumerate(labels)
            for form in _spellings(label)
            for language in languages
        )
        names = "|".join(map(quote_iri, self._profile.label + self._profile.alias))
        bearers = f"VALUES (?q ?l) {{ {rows} }} ?e {names} ?l ."
        searched = [
            f"{pattern} ?e {names} ?l . FILTER(LCASE(STR(?l)) = {quote_literal(label.lower())}) "
            f"{self._in_language('l')} BIND({number} AS ?q)"
            for number, label in enumerate(labels)
            if self._profile.text_search and (pattern := self._dialect.literals_with("l", label))
        ]
        if searched:
            bearers = _union([bearers, *searched])
        return (
            f"SELECT DISTINCT ?q ?e WHERE {{ {bearers} "
            f"{self._not_a_property()} }} LIMIT {NAMESAKES * len(labels)}"
        )

    def entities(self, iris: Sequence[str]) -> str:
        """Names, classes and triple counts of nodes, one ``?v`` in one role ``?r`` a row.

        Roles are the predicates of names, descriptions and classes, ``count`` of the triples that
        start there, ``known`` (some triple ends there), ``property`` and ``wider``.
        """
        profile = self._profile
        nodes = values("e", iris)
        # A UNION for each predicate: some planners scan all names if the predicate is a variable.
        parts = [
            f"{nodes} ?e {quote_iri(iri)} ?v . {test} BIND({quote_literal(iri)} AS ?r)"
            for iri in dict.fromkeys(profile.names + profile.type)
            for test in ["" if iri in profile.type else self._in_language("v")]
        ]
        parts.append(
            f'{{ SELECT ?e ("count" AS ?r) (COUNT(*) AS ?v) WHERE {{ {nodes} ?e ?p ?o . }} '
            "GROUP BY ?e }"
        )
        parts.append(f'{nodes} FILTER EXISTS {{ ?x ?y ?e }} BIND("known" AS ?r)')
        if not profile.property_entity_prefix:
            parts.append(f'{nodes} FILTER EXISTS {{ ?x ?e ?y }} BIND("property" AS ?r)')
        if self._classes:
            types = "|".join(map(quote_iri, profile.type))
            parts.append(
                f'{nodes} {self._classes} ?e ({types})/{self._wider} ?v . BIND("wider" AS ?r)'
            )
        return f"SELECT DISTINCT ?e ?r ?v WHERE {{ {_union(parts)} }}"

    def classes(self, iri: str) -> list[str]:
        """The query for the classes ``?v`` above one that the entity types name, if any do."""
        pattern = f"{self._classes} {quote_iri(iri)} {self._wider} ?v"
        return [f"SELECT DISTINCT ?v WHERE {{ {pattern} }}"] if self._classes else []

    def facts(self, iris: Sequence[str], most: int) -> str:
        """Facts out of and into each node, at most so many each way."""
        test = self._facts_only()
        parts = [
            f"{{ SELECT ({number} AS ?i) ?p {end} WHERE {{ {pattern} {test} }} LIMIT {most} }}"
            for number, node in enumerate(map(quote_iri, iris))
            for pattern, end in ((f"{node} ?p ?o .", "?o"), (f"?s ?p {node} .", "?s"))
        ]
        return f"SELECT ?i ?s ?p ?o WHERE {{ {_union(parts)} }}"

    def labels(self, iris: Sequence[str]) -> str:
        """Labels ``?nLabel`` of nodes ``?n``, through the label service where there is one."""
        profile = self._profile
        if profile.label_service and self._dialect.label_service:
            languages = quote_literal(",".join(profile.tags))
            return (
                f"SELECT ?n ?nLabel WHERE {{ {values('n', iris)} "
                f"SERVICE <{WIKIBASE}label> {{ <http://www.bigdata.com/rdf#serviceParam> "
                f"<{WIKIBASE}language> {languages} . }} }}"
            )
        test, nodes = self._in_language("nLabel"), values("n", iris)
        parts = [
            f"{nodes} ?n {quote_iri(label)} ?nLabel . {test} BIND({place} AS ?k)"
            for place, label in enumerate(profile.label)
        ]
        return f"SELECT ?n ?k ?nLabel WHERE {{ {_union(parts)} }}"

    def links(self, iris: Sequence[str]) -> str:
        """Facts between two different nodes of the given ones."""
        return (
            f"SELECT ?s ?p ?o WHERE {{ {values('s', iris)} {values('o', iris)} "
            f"?s ?p ?o . FILTER(?s != ?o) {self._facts_only()} }}"
        )

    def within(self, iris: Sequence[str]) -> str:
        """Steps by ``?p`` from a place ``?a`` to a wider ``?w``, on all ways up from each node."""
        path = "|".join(map(quote_iri, self._profile.within))
        predicates = values("p", self._profile.within)
        parts = [
            # One UNION a node: every server starts from a constant, not every one from VALUES.
            f"{{ SELECT ?a ?p ?w WHERE {{ {quote_iri(iri)} ({path})* ?a . {predicates} "
            f"?a ?p ?w . }} LIMIT 200 }}"  # a town has about twenty steps on all ways up
            for iri in iris
        ]
        return f"SELECT DISTINCT ?a ?p ?w WHERE {{ {_union(parts)} }}"

    def counts(self) -> tuple[str, str, str]:
        """Queries for the number ``?n`` of triples, of named entities, and of properties."""
        label = "|".join(map(quote_iri, self._profile.label))
        named = 'FILTER(ISIRI(?e) && !STRSTARTS(STR(?e), "urn:blank:"))'
        entities = f"?e {label} ?l . {self._not_a_property()} {named}"
        properties = f"{{ SELECT DISTINCT ?p WHERE {{ ?s ?p ?o }} }} {self._facts_only()}"
        return (
            "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }",
            f"SELECT (COUNT(DISTINCT ?e) AS ?n) WHERE {{ {entities} }}",
            f"SELECT (COUNT(*) AS ?n) WHERE {{ {properties} }}",
        )

    def _facts_only(self) -> str:
        """Keep ``?p`` that state facts for a reader, and leave external identifiers out."""
        profile = self._profile
        tests = []
        if profile.fact_prefixes:
            starts = (f"STRSTARTS(STR(?p), {quote_literal(p)})" for p in profile.fact_prefixes)
            tests.append(" || ".join(starts))
        tests += [
            f"!STRSTARTS(STR(?p), {quote_literal(skip[:-1])})"
            for skip in profile.skip
            if skip.endswith("*")
        ]
        plain = [skip for skip in profile.skip if not skip.endswith("*")]
        tests.append(f"?p NOT IN ({', '.join(map(quote_iri, (*profile.names, *plain)))})")
        test = " && ".join(f"({test})" for test in tests)
        text = f"FILTER({test})"
        if profile.property_entity_prefix:
            text += (
                f" FILTER NOT EXISTS {{ ?d <{WIKIBASE}directClaim> ?p ; "
                f"<{WIKIBASE}propertyType> <{WIKIBASE}ExternalId> }}"
            )
        return text

    def _not_a_property(self) -> str:
        """Keep ``?e`` that are no properties."""
        if self._profile.property_entity_prefix:
            return f"FILTER NOT EXISTS {{ ?e <{WIKIBASE}directClaim> ?claim }}"
        return "FILTER NOT EXISTS { ?from ?e ?to }"

    def _in_language(self, variable: str) -> str:
        test = "LANGMATCHES(LANG(?{}), {})" if self._dialect.lang_matches else "LANG(?{}) = {}"
        tags = " || ".join(
            test.format(variable, quote_literal(language)) for language in self._profile.tags
        )
        return f'FILTER(ISLITERAL(?{variable}) && (LANG(?{variable}) = "" || {tags}))'


def _union(parts: Sequence[str]) -> str:
    return " UNION ".join(f"{{ {part} }}" for part in parts)


def _spellings(label: str) -> list[str]:
    """The spellings a name is looked up by at an endpoint, which compares case by case."""
    words = label.split(" ")
    capitals = " ".join(word[:1].upper() + word[1:] for word in words)
    titled = " ".join(word[:1].upper() + word[1:].lower() for word in words)
    lower = label.lower()
    return list(dict.fromkeys((label, capitals, titled, lower, lower[:1].upper() + lower[1:])))
