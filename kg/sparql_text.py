"""The queries that a SPARQL endpoint is asked, as text, by vocabulary profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kg.dialects import DIALECTS, Dialect
from kg.profiles import Profile
from kg.quoting import quote_iri, quote_literal, values

__all__ = ["QueryWriter", "spellings"]

_WIKIBASE = "http://wikiba.se/ontology#"
_BLAZEGRAPH = "http://www.bigdata.com/rdf#"
NAMESAKES = 100
"""Namesakes that are read for one label; more than a person could tell apart."""

STEPS_READ = 200
"""Steps that are read on all ways up from one place; a town has about twenty."""


class QueryWriter:
    """Writes the queries of one profile; every name and id in them is escaped or checked.

    Args:
        profile: The vocabulary.
        dialect: The server's.
        text_search: Whether names are looked up by the server's index of texts as well.
    """

    def __init__(
        self,
        profile: Profile,
        dialect: Dialect = DIALECTS["standard"],
        *,
        text_search: bool = False,
    ) -> None:
        self._profile = profile
        self._dialect = dialect
        self._text_search = text_search

    def find(self, labels: Sequence[str]) -> str:
        """Nodes ``?e`` that bear the name of number ``?q``, in any of its usual spellings."""
        languages = (*self._profile.tags, "")
        rows = " ".join(
            f"({number} {quote_literal(form, language)})"
            for number, label in enumerate(labels)
            for form in spellings(label)
            for language in languages
        )
        names = "|".join(map(quote_iri, self._profile.label + self._profile.alias))
        bearers = f"VALUES (?q ?l) {{ {rows} }} ?e {names} ?l ."
        searched = [
            f"{pattern} ?e {names} ?l . FILTER(LCASE(STR(?l)) = {quote_literal(label.lower())}) "
            f"{self._language_filter('l')} BIND({number} AS ?q)"
            for number, label in enumerate(labels)
            if self._text_search and (pattern := self._dialect.literals_with("l", label))
        ]
        if searched:
            bearers = " UNION ".join(f"{{ {part} }}" for part in (bearers, *searched))
        return (
            f"SELECT DISTINCT ?q ?e WHERE {{ {bearers} "
            f"{self.not_a_property()} }} LIMIT {NAMESAKES * len(labels)}"
        )

    def entities(self, iris: Sequence[str]) -> str:
        """Names, classes and triple counts of nodes, one ``?v`` in one role ``?r`` a row.

        Roles are ``count``, ``known`` (some triple ends there), ``property``, ``type``,
        ``wider``, and ``name`` and ``description`` with the predicate's place in the profile.
        """
        profile = self._profile
        nodes = values("e", iris)

        def read(role: str, predicates: Sequence[str]) -> Iterator[str]:
            for place, predicate in enumerate(predicates):
                yield (
                    f"{{ {nodes} ?e {quote_iri(predicate)} ?v . {self._language_filter('v')} "
                    f'BIND("{role}{place}" AS ?r) }}'
                )

        parts = [
            (
                f'{{ SELECT ?e ("count" AS ?r) (COUNT(*) AS ?v) WHERE {{ {nodes} ?e ?p ?o . }} '
                "GROUP BY ?e }"
            ),
            f'{{ {nodes} FILTER EXISTS {{ ?x ?y ?e }} BIND("known" AS ?r) }}',
            *read("name", profile.label + profile.alias),
            *read("description", profile.description),
        ]
        if not profile.property_entity_prefix:
            parts.append(f'{{ {nodes} FILTER EXISTS {{ ?x ?e ?y }} BIND("property" AS ?r) }}')
        if profile.type:
            types = "|".join(map(quote_iri, profile.type))
            parts.append(f'{{ {nodes} ?e {types} ?v . BIND("type" AS ?r) }}')
            classes = sorted({profile.iri(id_) for ids in profile.ner.values() for id_ in ids})
            if profile.subclass and classes:
                wider = "|".join(map(quote_iri, profile.subclass))
                parts.append(
                    f"{{ {nodes} {values('v', classes)} ?e ({types})/({wider})+ ?v . "
                    'BIND("wider" AS ?r) }'
                )
        return f"SELECT DISTINCT ?e ?r ?v WHERE {{ {' UNION '.join(parts)} }}"

    def facts(self, iris: Sequence[str], limit: int) -> str:
        """Facts out of and into each node, at most ``limit`` for every node and direction."""
        facts = self.fact_filter()
        parts = []
        for number, iri in enumerate(iris):
            node = quote_iri(iri)
            for pattern, variable in ((f"{node} ?p ?o .", "?o"), (f"?s ?p {node} .", "?s")):
                parts.append(
                    f"{{ SELECT ({number} AS ?i) ?p {variable} WHERE {{ {pattern} {facts} }} "
                    f"LIMIT {limit} }}"
                )
        return f"SELECT ?i ?s ?p ?o WHERE {{ {' UNION '.join(parts)} }}"

    def labels(self, iris: Sequence[str]) -> str:
        """Labels ``?nLabel`` of nodes ``?n``, through the label service where there is one."""
        profile = self._profile
        if profile.label_service and self._dialect.label_service:
            languages = quote_literal(",".join(profile.tags))
            return (
                f"SELECT ?n ?nLabel WHERE {{ {values('n', iris)} "
                f"SERVICE <{_WIKIBASE}label> {{ "
                f"<{_BLAZEGRAPH}serviceParam> <{_WIKIBASE}language> {languages} . }} }}"
            )
        return (
            f"SELECT ?n ?k ?nLabel WHERE {{ {values('n', iris)} {values('k', profile.label)} "
            f"?n ?k ?nLabel . {self._language_filter('nLabel')} }}"
        )

    def links(self, iris: Sequence[str]) -> str:
        """Facts between two different nodes of the given ones."""
        return (
            f"SELECT ?s ?p ?o WHERE {{ {values('s', iris)} {values('o', iris)} "
            f"?s ?p ?o . FILTER(?s != ?o) {self.fact_filter()} }}"
        )

    def within(self, iris: Sequence[str]) -> str:
        """Steps by ``?p`` from a place ``?a`` to a wider ``?w``, on all ways up from each node."""
        path = "|".join(map(quote_iri, self._profile.within))
        predicates = values("p", self._profile.within)
        parts = [
            # One UNION a node: every server starts from a constant, not every one from VALUES.
            f"{{ SELECT ?a ?p ?w WHERE {{ {quote_iri(iri)} ({path})* ?a . {predicates} "
            f"?a ?p ?w . }} LIMIT {STEPS_READ} }}"
            for iri in iris
        ]
        return f"SELECT DISTINCT ?a ?p ?w WHERE {{ {' UNION '.join(parts)} }}"

    def fact_filter(self) -> str:
        """Keep ``?p`` that state facts for a reader, and leave external identifiers out."""
        profile = self._profile
        tests = []
        if profile.fact_prefixes:
            tests.append(
                " || ".join(
                    f"STRSTARTS(STR(?p), {quote_literal(prefix)})"
                    for prefix in profile.fact_prefixes
                )
            )
        tests += [
            f"!STRSTARTS(STR(?p), {quote_literal(skip[:-1])})"
            for skip in profile.skip
            if skip.endswith("*")
        ]
        plain = [skip for skip in profile.skip if not skip.endswith("*")]
        tests.append(f"?p NOT IN ({', '.join(map(quote_iri, (*profile.names, *plain)))})")
        text = f"FILTER({' && '.join(f'({test})' for test in tests)})"
        if profile.property_entity_prefix:
            text += (
                f" FILTER NOT EXISTS {{ ?d <{_WIKIBASE}directClaim> ?p ; "
                f"<{_WIKIBASE}propertyType> <{_WIKIBASE}ExternalId> }}"
            )
        return text

    def not_a_property(self) -> str:
        """Keep ``?e`` that are no properties."""
        if self._profile.property_entity_prefix:
            return f"FILTER NOT EXISTS {{ ?e <{_WIKIBASE}directClaim> ?claim }}"
        return "FILTER NOT EXISTS { ?from ?e ?to }"

    def _language_filter(self, variable: str) -> str:
        test = "LANGMATCHES(LANG(?{}), {})" if self._dialect.lang_matches else "LANG(?{}) = {}"
        tags = " || ".join(
            test.format(variable, quote_literal(language)) for language in self._profile.tags
        )
        return f'FILTER(ISLITERAL(?{variable}) && (LANG(?{variable}) = "" || {tags}))'


def spellings(label: str) -> list[str]:
    """The spellings a name is looked up by at an endpoint, which compares case by case."""
    capitals = " ".join(word[:1].upper() + word[1:] for word in label.split(" "))
    titled = " ".join(word[:1].upper() + word[1:].lower() for word in label.split(" "))
    lower = label.lower()
    return list(dict.fromkeys((label, capitals, titled, lower, lower[:1].upper() + lower[1:])))
