"""How far a load came, kept beside the store, so that an interrupted one can go on."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

from kg.segments import Place

__all__ = ["Journal"]

_FILE: Final = "load.json"


class Journal(BaseModel):
    """How far a load came, kept beside the store until it is done.

    Attributes:
        source: The file.
        size: Its bytes.
        changed: When it was changed, in nanoseconds.
        options: Table and selection that it was read with.
        base: What names the state of the graph that it is loaded into; empty for none.
        before: Triples that were in the graph before.
        indexed: Whether their names were in the label index.
        place: What is in the graph: bytes of the text that is loaded, and lines.
    """

    source: str
    size: int
    changed: int
    options: str
    base: str = ""
    before: int = 0
    indexed: bool = True
    place: Place = (0, 0)

    @property
    def origin(self) -> str:
        """What tells this state of the file from any other file, in 16 hexadecimal digits."""
        file = f"{self.source}|{self.size}|{self.changed}"
        return blake2b(file.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def continues(self, other: Journal) -> bool:
        """Whether another journal is of the same load."""
        own = {"before", "indexed", "place"}
        return self.model_dump(exclude=own) == other.model_dump(exclude=own)

    def write(self, graph: Path) -> None:
        """Keep it in a graph's directory."""
        new = graph / f"{_FILE}.new"
        new.write_text(self.model_dump_json())
        new.replace(graph / _FILE)

    @staticmethod
    def remove(graph: Path) -> None:
        """Remove what a directory holds: the load is done."""
        (graph / _FILE).unlink(missing_ok=True)

    @classmethod
    def resumable(cls, load: Journal, graph: Path) -> Journal | None:
        """The journal that a directory holds of the same load; None where there is none."""
        try:
            kept = cls.model_validate_json((graph / _FILE).read_bytes())
        except (OSError, ValidationError):
            return None
        return kept if kept.continues(load) else None
