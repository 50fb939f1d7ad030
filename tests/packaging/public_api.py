"""What a change takes from users of the public names: ``make api AGAINST=v0.2.0``.

Public is what ``guardrail``, ``chains``, ``kg`` and ``judges`` list in their ``__all__``, with the
parameters, methods and fields of each. Griffe reads both sides without running them. A name whose
users have to change their code stands under *Upgrading* in the changelog's topmost section.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import griffe

PACKAGES = ("guardrail", "chains", "kg", "judges")
CALLED_BY_NAME = ("__init__", "__call__")
"""Methods of Python's own that are given arguments by name; the others get them in their order."""


def breaking_changes(
    repository: Path, against: str, packages: Iterable[str]
) -> list[tuple[str, str]]:
    """What users of a commit may name or pass and the working tree no longer takes.

    Returns:
        For each change the public name, and a line of Markdown that describes it.

    Raises:
        RuntimeError: Git does not know ``against``.
    """
    changes: dict[tuple[str, str], None] = {}  # no duplicates for names that two packages export
    for package in packages:
        old = griffe.load_git(
            package, ref=against, repo=repository, search_paths=["."], resolve_aliases=True,
            resolve_external=True,
        )  # fmt: skip
        new = griffe.load(
            package, search_paths=[repository], resolve_aliases=True, resolve_external=True
        )
        changes |= dict.fromkeys(_changes(old, new))
    return list(changes)


def _changes(
    old: griffe.Object | griffe.Alias, new: griffe.Object | griffe.Alias
) -> Iterator[tuple[str, str]]:
    for name in map(str, old.exports or ()):
        for change in griffe.find_breaking_changes(_alone(old, name), _alone(new, name)):
            if change.kind is griffe.BreakageKind.OBJECT_REMOVED or _called_by_name(change.obj):
                yield name, change.explain(griffe.ExplanationStyle.MARKDOWN)


def _alone(package: griffe.Object | griffe.Alias, name: str) -> griffe.Module:
    """A module with that public name of a package alone, or with nothing where it has none."""
    module = griffe.Module(package.name, filepath=package.filepath)
    module.exports = {name}
    if name in map(str, package.exports or ()):
        found = package.members[name]
        target = found.final_target if found.is_alias else found
        module.members[name] = griffe.Alias(name, target, parent=module)
    return module


def _called_by_name(thing: griffe.Object) -> bool:
    return not thing.name.startswith("__") or thing.name in CALLED_BY_NAME


def upgrading(changelog: str) -> str:
    """What the topmost section of a changelog says under *Upgrading*."""
    newest = changelog.partition("\n## ")[2].partition("\n## ")[0]
    return newest.partition("\n### Upgrading\n")[2].partition("\n### ")[0]


def main() -> None:
    """Print the changes, and exit with 1 where *Upgrading* does not name what they are of."""
    against, here = sys.argv[1], Path.cwd()
    changes = breaking_changes(here, against, PACKAGES)
    notes = upgrading((here / "CHANGELOG.md").read_text(encoding="utf-8"))
    undocumented = list(dict.fromkeys(name for name, _ in changes if name not in notes))
    print("\n".join([*(line for _, line in changes), f"{len(changes)} since {against}"]))
    if undocumented:
        sys.exit(f"not under Upgrading in CHANGELOG.md: {', '.join(undocumented)}")


if __name__ == "__main__":
    main()
