"""Whether the packages ``kg``, ``judges`` and ``chains`` are this distribution's own.

Their names are common. Another distribution that has one of them is noticed when ``guardrail`` is
imported, whichever of the two was installed last: the later one wrote over the other's files.
"""

from __future__ import annotations

import base64
import hashlib
import warnings
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

__all__ = ["SIBLINGS", "check_siblings"]

SIBLINGS = ("kg", "judges", "chains")
OURS = "kg_guardrail-*.dist-info"


def check_siblings(home: Path) -> None:
    """Refuse to run on foreign packages that took the names of ours; warn where ours took theirs.

    The check only looks where the packages lie and which distribution wrote them; nothing is
    imported.

    Args:
        home: The folder that holds ``guardrail``.

    Raises:
        ImportError: One of them belongs to another distribution; says what to do.
    """
    for name in SIBLINGS:
        spec = find_spec(name)
        origin = None if spec is None or spec.origin is None else Path(spec.origin).resolve()
        if origin == home / name / "__init__.py":
            continue
        folders = [] if spec is None else list(spec.submodule_search_locations or ())
        if not folders or (origin is None and Path(folders[0]).resolve() == home / name):
            where, advice = "is missing", "run: pip install --force-reinstall kg-guardrail"
        elif origin is None:
            where, advice = f"is the folder {folders[0]}", "rename it or run from another folder"
        else:
            where, advice = f"comes from {origin.parent}", _remedy(name, origin.parent)
        raise ImportError(
            f"the package {name!r} that kg-guardrail needs {where} instead of being its own; "
            f"{advice}."
        )
    _check_rivals(home)


def _check_rivals(home: Path) -> None:
    """Look for distributions beside ours that wrote packages of the same names."""
    ours = next(home.glob(OURS), None)
    if ours is None:  # a checkout: nothing was installed over it
        return
    for folder in home.glob("*.dist-info"):
        if folder == ours:
            continue
        taken = [name for name in SIBLINGS if _writes(folder, name)]
        if not taken:
            continue
        rival = _name(folder)
        package = " and ".join(map(repr, taken))
        if any(_overwritten(home, ours, name) for name in taken):
            raise ImportError(
                f"the distribution {rival!r} wrote over the package {package} of kg-guardrail; "
                f"{_uninstall(rival)}, or keep the two in separate environments."
            )
        warnings.warn(
            f"kg-guardrail wrote over the package {package} of the distribution {rival!r}, which "
            f"cannot work now and takes files of kg-guardrail along when it is removed; "
            f"{_uninstall(rival)}, or keep the two in separate environments.",
            RuntimeWarning,
            stacklevel=4,
        )


def _writes(folder: Path, name: str) -> bool:
    """Whether a distribution's record lists files of a top-level package."""
    try:
        record = (folder / "RECORD").read_bytes()
    except OSError:
        return False
    start = name.encode() + b"/"
    return record.startswith(start) or b"\n" + start in record


def _overwritten(home: Path, ours: Path, name: str) -> bool:
    """Whether a file of our package is no longer the one that was installed."""
    for path, digest in _recorded(ours, name):
        try:
            data = (home / path).read_bytes()
        except OSError:
            return True
        found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        if found != digest:
            return True
    return False


def _recorded(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """Our source files of one package, with the digests that they were installed with."""
    for line in (folder / "RECORD").read_text(encoding="utf-8").splitlines():
        path, _, rest = line.partition(",")
        digest = rest.partition(",")[0].removeprefix("sha256=")
        if path.startswith(f"{name}/") and path.endswith(".py") and digest:
            yield path, digest


def _name(folder: Path) -> str:
    return folder.name.removesuffix(".dist-info").rpartition("-")[0]


def _remedy(name: str, folder: Path) -> str:
    """What to do about a package that was found in a foreign folder."""
    owners: Iterable[str] = (
        _name(item) for item in folder.parent.glob("*.dist-info") if _writes(item, name)
    )
    owner = next((item for item in owners if not item.startswith("kg_guardrail")), None)
    return f"run: pip uninstall {owner}" if owner else f"uninstall it, or rename {folder}"


def _uninstall(rival: str) -> str:
    return f"run: pip uninstall {rival} && pip install --force-reinstall kg-guardrail"
