"""How many processors this process may use: affinity, and the quota of its container."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path


def usable_cpus(root: Path = Path("/")) -> int:
    """Return the number of processors this process may use, at least 1.

    The CPU quota of a container (that of Docker, or a limit of Kubernetes) bounds it as well; more
    threads than that are throttled. A part of a processor counts as one.

    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html (``cpu.max``) and
    https://docs.kernel.org/scheduler/sched-bwc.html (``cpu.cfs_quota_us``, version 1).
    """
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    count = len(allowed) or os.cpu_count() or 1
    return max(1, min([count, *map(math.ceil, _quotas(root))]))


def _quotas(root: Path) -> Iterator[float]:
    """The quotas of this process's control groups and of all groups above them, in processors."""
    mount = root / "sys" / "fs" / "cgroup"
    for line in _read(root / "proc" / "self" / "cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        # Version 2 has one tree and names no controllers.
        tops = [mount / controllers, mount / "cpu"] if controllers else [mount, mount / "unified"]
        for top in tops:
            group = top / path.strip("/")
            for folder in (group, *group.parents):
                if not folder.is_relative_to(top):
                    break
                yield from _quota(folder)


def _quota(folder: Path) -> Iterator[float]:
    both = _read(folder / "cpu.max").split() or [
        _read(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")
    ]
    try:
        quota, period = map(int, both)
    except ValueError:  # no such file, or "max", for no limit
        return
    if quota > 0 and period > 0:
        yield quota / period


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
