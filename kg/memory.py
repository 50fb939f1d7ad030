"""How much memory this process holds."""

from __future__ import annotations

import re
import sys
from pathlib import Path

__all__ = ["peak_mb"]


def peak_mb() -> float | None:
    """The most memory that the process held so far, in MiB; None where the system does not tell."""
    try:
        # getrusage would count what the parent held when it started this process.
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        if peak := re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE):
            return int(peak[1]) / 1024
    except OSError:  # no Linux
        pass
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:  # Windows
        return None
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return getrusage(RUSAGE_SELF).ru_maxrss * unit / 2**20
