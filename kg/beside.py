"""A graph that is loaded beside its place, so that what fails or is killed leaves the old one."""

from __future__ import annotations

import shutil
from pathlib import Path
from traceback import clear_frames

from guardrail.core.errors import KnowledgeGraphError
from kg.label_file import NAMES
from kg.profiles import STORED_PROFILE
from kg.store import SNAPSHOT, OxigraphGraph

__all__ = ["beside", "let_go", "put_back", "put_in_place", "snapshot_name", "start_beside"]


def start_beside(target: Path, partial: Path, *, existing: bool) -> None:
    """Make the folder that is loaded into, with what the graph holds already."""
    if not existing:
        partial.mkdir()
        return
    graph = OxigraphGraph.open(target, writable=True)
    try:
        graph.store.backup(str(partial))
    finally:
        graph.close()
    for name in (SNAPSHOT, STORED_PROFILE):
        if (target / name).is_file():
            shutil.copy2(target / name, partial / name)
    if (target / NAMES).is_dir():
        shutil.copytree(target / NAMES, partial / NAMES)


def put_in_place(target: Path, partial: Path, *, existing: bool) -> None:
    """Put what was loaded in its place; killed at any step, it leaves what can be put back."""
    if existing:
        # Refused while another process writes there.
        OxigraphGraph.open(target, writable=True).close()
        target.rename(beside(target, "old"))
    elif target.exists():
        target.rmdir()
    partial.rename(target)
    if existing:
        replaced = beside(target, "replaced")
        shutil.rmtree(replaced, ignore_errors=True)
        beside(target, "old").rename(replaced)
        shutil.rmtree(replaced, ignore_errors=True)


def put_back(target: Path) -> None:
    """Give a graph its place again where a load was killed before it put the new one there."""
    old = beside(target, "old")
    if not old.exists():
        return
    if target.exists():
        raise KnowledgeGraphError(
            f"{old} holds {target} as it was before a load that was killed; remove it, or put it "
            "in its place again"
        )
    old.rename(target)


def beside(target: Path, what: str) -> Path:
    """The hidden folder beside a graph where a load keeps something for a time."""
    return target.parent / f".{target.name}.{what}"


def snapshot_name(target: Path) -> str:
    """What names the state of the graph; empty where there is none."""
    try:
        return (target / SNAPSHOT).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def let_go(error: BaseException | None) -> None:
    """Let go of the store that the frames of an error hold, so that its files can go."""
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
