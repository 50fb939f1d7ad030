"""The shape of the packages: size, imports, open types, duplicates, as the source tells them.

    python -m benchmarks.shape [--root DIR] [--ref COMMIT ...] [--where]

Prints one table: a column for each commit that ``--ref`` names, read through ``git archive``, and
one for the files as they are. The packages are those that ``pyproject.toml`` puts into the wheel.

An import counts where it runs as its module is imported: at the top, and in ``try``, ``if`` and
``class`` there. Imports within functions and under ``TYPE_CHECKING`` do not count, and neither do
the packages around a module. A name that a package loads on use counts as one of the module that
it comes from. The depth of a module is the number of modules in the longest chain that starts with
it, itself included.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from pathlib import Path
from typing import Final, TypeGuard

__all__ = ["Module", "Shape", "main", "read", "read_commit", "table"]

ROOT: Final = Path(__file__).parents[1]
FLOORS: Final = (
    ("guardrail.core",),
    ("kg", "judges"),
    ("guardrail",),
    ("chains",),
    ("guardrail.commands",),
    ("guardrail.cli",),
    ("guardrail.__main__",),
)
"""From the ground up: each sees those beneath it, and of its own only the part that it is in."""
APART: Final = ("*.training.*", "*.build_people")
"""Offline tools, which stand above everything."""
ENTRIES: Final = ("guardrail.guard", "chains.gateway.app")
SETTINGS: Final = ("GuardrailConfig", "GatewaySettings")
"""Classes at the root of the tree of settings."""
ALIKE: Final = 6
"""Lines in a row that two places must share to be called duplicates."""


class Module:
    """A file of the packages.

    Attributes:
        name: As it is imported.
        source: Its text.
        tree: Its syntax.
    """

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.source = source
        self.tree = ast.parse(source)

    @cached_property
    def imports(self) -> frozenset[tuple[str, str]]:
        """Modules with the name taken from each, of imports that run with the module."""
        return frozenset(_named(_run(self.tree.body)))

    @cached_property
    def all_imports(self) -> frozenset[tuple[str, str]]:
        """The same of imports anywhere in it."""
        return frozenset(_named(ast.walk(self.tree)))

    @cached_property
    def shown(self) -> dict[str, str]:
        """For names that are imported for types alone, the modules that they come from."""
        checked = [node for top in self.tree.body if _for_types(top) for node in top.body]
        return {name: home for home, name in _named(checked) if name}

    @cached_property
    def code(self) -> list[tuple[int, str]]:
        """Lines with their numbers; without blank ones, comments, docstrings and imports."""
        return self._lines(set())

    @cached_property
    def bodies(self) -> list[tuple[int, str]]:
        """``code`` without signatures, which a function and its coroutine have to share."""
        signatures = set[int]()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                signatures.update(range(node.lineno, node.body[0].lineno))
        return self._lines(signatures)

    def _lines(self, left_out: set[int]) -> list[tuple[int, str]]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import | ast.ImportFrom) or (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        lines = enumerate(map(str.strip, self.source.splitlines()), 1)
        return [(n, line) for n, line in lines if line and line[0] != "#" and n not in left_out]


class Shape:
    """What the modules of a tree are to each other.

    Args:
        modules: By name.
        rooms: The packages.
    """

    def __init__(self, modules: Mapping[str, Module], rooms: Sequence[str]) -> None:
        self.modules = modules
        self.rooms = rooms

    def lines(self, room: str) -> int:
        """Lines of a package, or of a part of one such as ``guardrail.engine``."""
        return sum(
            len(module.source.splitlines())
            for module in self.modules.values()
            if _within(module.name, room)
        )

    @property
    def weight(self) -> int:
        """Bytes of the code."""
        return sum(len(module.source.encode()) for module in self.modules.values())

    @property
    def public_names(self) -> int:
        """Length of ``guardrail.__all__``."""
        for node in self.modules["guardrail"].tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return len(list(ast.walk(node.value))) - 2  # the list itself and its context
        return 0

    @property
    def constants(self) -> int:
        """Names in capitals that modules assign at the top."""
        return sum(
            isinstance(target, ast.Name) and target.id.isupper()
            for module in self.modules.values()
            for node in module.tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        )

    def settings(self) -> list[str]:
        """Settings by their place in the tree, fields of ``SETTINGS`` and of their sections."""
        classes = defaultdict[str, dict[str, dict[str, set[str]]]](dict)  # by name and module
        for module in self.modules.values():
            for node in module.tree.body:
                if isinstance(node, ast.ClassDef):
                    classes[node.name][module.name] = dict(_fields(node))

        def below(name: str, near: str, place: str) -> Iterator[str]:
            homes = classes[name]
            home = near if near in homes else next(iter(homes))
            for field, types in homes[home].items():
                sections = [kind for kind in sorted(types) if any(classes[kind].values())]
                for section in sections:
                    yield from below(section, home, f"{place}{field}.")
                if not sections:
                    yield f"{place}{field}"

        return [setting for name in SETTINGS if classes[name] for setting in below(name, "", "")]

    @property
    def circles(self) -> list[tuple[str, ...]]:
        """Modules that import themselves through others; one circle for each import too many."""
        return self._unrolled[1]

    def chain(self, name: str) -> tuple[str, ...]:
        """The longest chain of imports that starts with a module, an import of a circle left out.

        Raises:
            KeyError: There is no such module.
        """
        return self._unrolled[0][name]

    @property
    def deepest(self) -> tuple[str, ...]:
        """The longest chain of all."""
        return max(map(self.chain, self.modules), key=len, default=())

    def arrows_up(self) -> list[str]:
        """Imports, wherever they stand, of a floor above or of a neighbour on the same one."""
        found = []
        for module in self.modules.values():
            if any(fnmatchcase(module.name, pattern) for pattern in APART):
                continue
            own, part = _floor(module.name)
            for other in sorted(self._resolved(module.all_imports)):
                floor, neighbour = _floor(other)
                if floor > own or (floor == own and neighbour != part):
                    found.append(f"{module.name} -> {other}")
        return found

    def open_types(self) -> list[str]:
        """Where ``Any`` stands."""
        return [
            f"{module.name}:{node.lineno}"
            for module in self.modules.values()
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Name) and node.id == "Any"
        ]

    def duplicates(self, *, signatures: bool = True) -> list[str]:
        """Pairs of places that share ``ALIKE`` lines of code or more.

        Args:
            signatures: Whether those of functions count; duplicate finders leave them out.
        """
        codes = {
            name: module.code if signatures else module.bodies
            for name, module in self.modules.items()
        }
        places = defaultdict[tuple[str, ...], list[tuple[str, int]]](list)
        for name, code in codes.items():
            texts = [line for _, line in code]
            for start in range(len(texts) - ALIKE + 1):
                places[tuple(texts[start : start + ALIKE])].append((name, start))
        pairs = {
            (a, b)
            for alike in places.values()
            for a, b in combinations(alike, 2)
            if a[0] != b[0] or b[1] - a[1] >= ALIKE
        }
        firsts = [(a, b) for a, b in pairs if ((a[0], a[1] - 1), (b[0], b[1] - 1)) not in pairs]
        return [
            " = ".join(f"{name}:{codes[name][number][0]}" for name, number in pair)
            for pair in sorted(firsts)
        ]

    def _resolved(self, imports: Iterable[tuple[str, str]]) -> set[str]:
        """The modules of these packages that imports load."""
        found = set()
        for home, name in imports:
            if f"{home}.{name}" in self.modules:
                found.add(f"{home}.{name}")
                continue
            while home in self.modules:
                found.add(home)
                home = self.modules[home].shown.get(name, "")
        return found

    @cached_property
    def _unrolled(self) -> tuple[dict[str, tuple[str, ...]], list[tuple[str, ...]]]:
        """Chains, and the circles that were cut on the way."""
        below = {
            name: self._resolved(module.imports) - {name} for name, module in self.modules.items()
        }
        circles = []
        while True:
            try:
                order = list(TopologicalSorter(below).static_order())
                break
            except CycleError as error:
                circle: list[str] = error.args[1]  # each is imported by the one after it
                circles.append(tuple(reversed(circle)))
                below[circle[1]].discard(circle[0])
        chains: dict[str, tuple[str, ...]] = {}
        for name in order:
            longest = max((chains[other] for other in sorted(below[name])), key=len, default=())
            chains[name] = (name, *longest)
        return chains, circles


def read(root: Path = ROOT) -> Shape:
    """Read the packages that the ``pyproject.toml`` of a folder puts into the wheel.

    Raises:
        OSError: There is none.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    find = project["tool"]["setuptools"]["packages"]["find"]
    rooms = [pattern.rstrip("*") for pattern in find["include"]]
    modules = {}
    for file in sorted(file for room in rooms for file in (root / room).rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        package = ".".join(parts[:-1])
        if not any(fnmatchcase(package, pattern) for pattern in find.get("exclude", ())):
            name = ".".join(parts).removesuffix(".__init__")
            modules[name] = Module(name, file.read_text("utf-8"))
    return Shape(modules, rooms)


def read_commit(ref: str, root: Path = ROOT) -> Shape:
    """Read the packages as they were at a commit.

    Raises:
        subprocess.CalledProcessError: There is no such commit.
    """
    done = subprocess.run(
        ["git", "archive", ref, "--", "pyproject.toml", "*.py"],
        cwd=root,
        stdout=subprocess.PIPE,
        check=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(folder, filter="data")
        return read(Path(folder))


def table(shapes: Mapping[str, Shape]) -> str:
    """A column for each shape, by its title."""
    columns = [_figures(shape) for shape in shapes.values()]
    rows = dict.fromkeys(what for column in columns for what in column)
    lines = [f"| | {' | '.join(shapes)} |", f"|---|{'--:|' * len(columns)}"]
    lines += [f"| {row} | {' | '.join(c.get(row, '–') for c in columns)} |" for row in rows]
    return "\n".join(lines)


def _figures(shape: Shape) -> dict[str, str]:
    counts = {f"lines of `{room}`": shape.lines(room) for room in shape.rooms}
    counts["lines in the wheel"] = sum(counts.values())
    counts["files in the wheel"] = len(shape.modules)
    counts["public names of `guardrail`"] = shape.public_names
    counts["settings"] = len(shape.settings())
    counts["module constants"] = shape.constants
    counts["code in the wheel, KiB"] = round(shape.weight / 1024)
    for entry in ENTRIES:
        if entry in shape.modules:
            counts[f"depth of imports, `{entry}`"] = len(shape.chain(entry))
    counts |= {
        "depth of imports, deepest module": len(shape.deepest),
        "imports of a floor above": len(shape.arrows_up()),
        "circles": len(shape.circles),
        "`Any`": len(shape.open_types()),
        f"pairs of places that share {ALIKE} lines or more": len(shape.duplicates()),
        "the same without signatures": len(shape.duplicates(signatures=False)),
    }
    return {what: f"{count:,}" for what, count in counts.items()}


def _run(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes that run as the module is imported."""
    for node in body:
        yield node
        if _for_types(node):
            yield from _run(node.orelse)
        elif isinstance(node, ast.Try | ast.ExceptHandler | ast.If | ast.With | ast.ClassDef):
            yield from _run(ast.iter_child_nodes(node))


def _for_types(node: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _named(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, set[str]]]:
    """The annotated fields of a class, each with the names in its annotation."""
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            names = (part for part in ast.walk(item.annotation) if isinstance(part, ast.Name))
            yield item.target.id, {part.id for part in names}


def _within(name: str, room: str) -> bool:
    return name == room or name.startswith(f"{room}.")


def _floor(name: str) -> tuple[int, str]:
    """The floor that a module is on, and which part of it."""
    found = [
        (len(part), number, part)
        for number, floor in enumerate(FLOORS)
        for part in floor
        if _within(name, part)
    ]
    _, number, part = max(found)
    return number, part


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Size, imports, open types and duplicates.")
    parser.add_argument("--ref", action="append", default=[], help="a commit to compare with")
    parser.add_argument("--where", action="store_true", help="name the places behind the counts")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    options = parser.parse_args(arguments)
    now = read(options.root)
    old = {f"`{ref}`": read_commit(ref, options.root) for ref in options.ref}
    print(table({**old, "now": now}))
    if options.where:
        starts = [name for name in ENTRIES if name in now.modules]
        for chain in (*map(now.chain, starts), now.deepest):
            print("", *chain, sep="\n")
        circles = [" -> ".join(circle) for circle in now.circles]
        print("", *now.arrows_up(), *circles, *now.duplicates(), *now.settings(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
