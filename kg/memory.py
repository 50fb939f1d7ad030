"""How much memory this process holds."""

from __future__ import annotations

import sys

__all__ = ["peak_mb"]


def peak_mb() -> float | None:
    """The most memory that the process held so far, in MiB; None where the system does not tell."""
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:  # Windows
        return None
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return getrusage(RUSAGE_SELF).ru_maxrss * unit / 2**20
