"""Differences of SPARQL servers from the standard, as one table.

Sources, by server:

- QLever: https://github.com/ad-freiburg/qlever/pull/1162 (a time limit above the server's own is
  refused), https://github.com/ad-freiburg/qlever/issues/194 (``LANG(?x) = "en"`` has an index,
  ``langMatches`` none), https://github.com/ad-freiburg/qlever/blob/master/docs/sparql_plus_text.md
- Virtuoso: https://github.com/openlink/virtuoso-opensource/blob/develop/7/README.ANYTIME.md
  (milliseconds, a second at least; what is cut short is marked ``S1TAT`` or 206),
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
from typing import Final, Literal
from urllib.parse import urlsplit

from guardrail.core.errors import ConfigError
from guardrail.core.types import Value
from kg.quoting import quote_literal

__all__ = ["DIALECTS", "Dialect", "dialect_of"]


class Dialect(Value):
    """Parameters of one server.

    Attributes:
        name: Its name in settings and profiles.
        timeout: Parameter or header for the time limit; None if there is none.
        timeout_as: Where the time limit is sent.
        timeout_unit_s: Unit of the time limit in seconds; it is rounded up to whole units.
        timeout_least: Smallest time limit in units.
        accept: Accepted types of results; None for those of the standard.
        accept_graph: Accepted types of RDF; None for those of the standard.
        lang_matches: True if ``LANGMATCHES`` is as fast as ``LANG(?x) = "en"``; otherwise texts in
            ``en-GB`` are not read for ``en``.
        label_service: True if it has Wikidata's label service, for profiles that use it.
        text_search: Pattern that binds ``?{variable}`` to literals with all words ``{words}``, by
            the server's text index; None if it has none.
        words: Format of each ``{word}`` in that pattern.
        between_words: Separator of the words.
    """

    name: str
    timeout: str | None = None
    timeout_as: Literal["parameter", "header"] = "parameter"
    timeout_unit_s: float = 1.0
    timeout_least: int = 1
    accept: str | None = None
    accept_graph: str | None = None
    lang_matches: bool = True
    label_service: bool = False
    text_search: str | None = None
    words: str = "{word}"
    between_words: str = " "

    def headers(self, timeout_s: float, *, graph: bool) -> dict[str, str]:
        """Headers of a query with a time limit."""
        accept = self.accept_graph if graph else self.accept
        return self._limit(timeout_s, "header") | ({"Accept": accept} if accept else {})

    def parameters(self, timeout_s: float) -> dict[str, str]:
        """Additional parameters of a query with a time limit."""
        return self._limit(timeout_s, "parameter")

    def literals_with(self, variable: str, text: str) -> str | None:
        """The pattern for literals with all words of a text; None if there is none."""
        words = _WORD.findall(text)
        if self.text_search is None or not words:
            return None
        joined = self.between_words.join(self.words.format(word=word) for word in words)
        return self.text_search.format(variable=variable, words=quote_literal(joined))

    def _limit(self, timeout_s: float, place: str) -> dict[str, str]:
        if self.timeout is None or self.timeout_as != place:
            return {}
        units = math.ceil(timeout_s / self.timeout_unit_s)
        return {self.timeout: str(max(self.timeout_least, units))}


_WORD: Final = re.compile(r"[^\W_]+")
_QL: Final = "http://qlever.cs.uni-freiburg.de/builtin-functions/"
_BDS: Final = "http://www.bigdata.com/rdf/search#"

DIALECTS: Final = {
    dialect.name: dialect
    for dialect in (
        Dialect(name="standard"),
        Dialect(
            name="qlever",
            lang_matches=False,
            text_search=f"?text <{_QL}contains-entity> ?{{variable}} ; "
            f"<{_QL}contains-word> {{words}} .",
        ),
        Dialect(
            name="virtuoso",
            timeout="timeout",
            timeout_unit_s=0.001,
            timeout_least=1000,
            text_search="?{variable} <bif:contains> {words} .",
            words="'{word}'",
            between_words=" AND ",
        ),
        Dialect(
            name="blazegraph",
            timeout="X-BIGDATA-MAX-QUERY-MILLIS",
            timeout_as="header",
            timeout_unit_s=0.001,
            accept="application/sparql-results+json",
            accept_graph="application/x-turtle",
            label_service=True,
            text_search=f'?{{variable}} <{_BDS}search> {{words}} ; <{_BDS}matchAllTerms> "true" .',
        ),
        Dialect(
            name="graphdb",
            timeout="timeout",
            text_search='?{variable} <http://www.ontotext.com/fts> ({words} "*") .',
            between_words=" AND ",
        ),
    )
}
"""Dialects by name."""

_HOSTS: Final = {
    "query.wikidata.org": "blazegraph",
    "query-main.wikidata.org": "blazegraph",
    "query-scholarly.wikidata.org": "blazegraph",
    "qlever.cs.uni-freiburg.de": "qlever",
    "qlever.dev": "qlever",
    "dbpedia.org": "virtuoso",
}
_PATHS: Final = {
    "/repositories/": "graphdb",
    "/blazegraph/": "blazegraph",
    "/bigdata/": "blazegraph",
}


def dialect_of(url: str, wanted: str | None, profiled: str | None) -> Dialect:
    """The dialect of an endpoint, by its settings, else its address, else its profile.

    Args:
        url: Its address; well-known hosts and paths have a dialect.
        wanted: The dialect in the settings.
        profiled: The dialect in the profile.

    Raises:
        ConfigError: No dialect has that name.
    """
    parts = urlsplit(url)
    by_path = next((name for path, name in _PATHS.items() if path in parts.path), None)
    name = wanted or _HOSTS.get(parts.hostname or "") or by_path or profiled or "standard"
    if name not in DIALECTS:
        raise ConfigError(f"no SPARQL dialect {name!r}; choose one of {', '.join(DIALECTS)}")
    return DIALECTS[name]
