"""Build the people graph that ships with the package: facts as RDF with Wikidata ids.

``python -m training.people people.jsonl.gz wikidata_property_labels.jsonl.gz kg/data/people.nt.gz``
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

from pyoxigraph import NamedNode, RdfFormat, serialize

from training.persons import HUMAN, WD, build, read_people

__all__ = ["main", "read_property_labels"]


def read_property_labels(path: Path) -> dict[str, str]:
    """Read ``{pid, label}`` lines, gzipped, as a table from property id to label."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return {row["pid"]: row["label"] for row in map(json.loads, lines)}


def main() -> None:
    """Run the build from the command line."""
    parser = argparse.ArgumentParser(description="Build the people graph as gzipped N-Triples.")
    parser.add_argument("people", type=Path, help="people.jsonl.gz")
    parser.add_argument("labels", type=Path, help="wikidata_property_labels.jsonl.gz")
    parser.add_argument("output", type=Path, help="where to write the graph (.nt.gz)")
    arguments = parser.parse_args()
    with gzip.open(arguments.people) as lines:
        people = list(read_people(arguments.people, lines))
    triples = list(build(people, read_property_labels(arguments.labels)))
    text = serialize(triples, format=RdfFormat.N_TRIPLES)
    assert text is not None
    # No time stamp in the header: the same input gives the same bytes.
    arguments.output.write_bytes(gzip.compress(text, compresslevel=9, mtime=0))
    links = sum(
        isinstance(t.object, NamedNode)
        and t.object.value.startswith(WD + "Q")
        and t.object.value != WD + HUMAN
        for t in triples
    )
    print(f"{len(triples)} triples, {links} links between persons -> {arguments.output}")


if __name__ == "__main__":
    main()
