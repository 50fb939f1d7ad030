"""A graph that is made beside its place, and put there once it is complete."""

from __future__ import annotations

import shutil
from pathlib import Path

from guardrail.core.errors import KnowledgeGraphError
from kg.label_file import NAMES
from kg.profiles import STORED_PROFILE
from kg.store import SNAPSHOT, OxigraphGraph

__all__ = ["Replacement"]


class Replacement:
    """The folder that is loaded into in place of a graph's own.

    Where a load was killed before it put the new graph into its place, the old one gets it again.

    Args:
        target: The graph's directory.

    Attributes:
        folder: The hidden folder beside it.

    Raises:
        KnowledgeGraphError: The directory holds something else, or what a killed load has left is
            for the user to choose from.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._old = self._beside("old")
        self.folder = self._beside("loading")
        if self._old.exists():
            if target.exists():
                raise KnowledgeGraphError(
                    f"{self._old} holds {target} as it was before a load that was killed; remove "
                    "it, or put it in its place again"
                )
            self._old.rename(target)
        self._existing = (target / "CURRENT").is_file()
        if (
            not self._existing
            and target.exists()
            and (not target.is_dir() or any(target.iterdir()))
        ):
            raise KnowledgeGraphError(f"{target} exists and is no graph; name another directory")

    @property
    def snapshot(self) -> str:
        """What names the state of the graph; empty where there is none."""
        try:
            return (self._target / SNAPSHOT).read_text(encoding="utf-8").strip()
        except OSError:
            return ""

    def start(self) -> None:
        """Make the folder, with what the graph holds already."""
        if not self._existing:
            self.folder.mkdir()
            return
        graph = OxigraphGraph.open(self._target, writable=True)
        try:
            graph.store.backup(str(self.folder))
        finally:
            graph.close()
        for name in (SNAPSHOT, STORED_PROFILE):
            if (self._target / name).is_file():
                shutil.copy2(self._target / name, self.folder / name)
        if (self._target / NAMES).is_dir():
            shutil.copytree(self._target / NAMES, self.folder / NAMES)

    def finish(self) -> None:
        """Put the folder in its place; killed at any step, it leaves what can be put back."""
        if self._existing:
            # Refused while another process writes there.
            OxigraphGraph.open(self._target, writable=True).close()
            self._target.rename(self._old)
        elif self._target.exists():
            self._target.rmdir()
        self.folder.rename(self._target)
        if self._existing:
            replaced = self._beside("replaced")
            shutil.rmtree(replaced, ignore_errors=True)
            self._old.rename(replaced)
            shutil.rmtree(replaced, ignore_errors=True)

    def _beside(self, what: str) -> Path:
        return self._target.parent / f".{self._target.name}.{what}"
