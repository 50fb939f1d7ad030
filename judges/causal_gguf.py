"""GGUF files for Hugging Face models: dequantised once, then read from a cache.

Reading a GGUF file takes transformers about a minute, most of it for the vocabulary; the folder
that it writes loads in seconds.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

__all__ = ["converted"]


def converted(file: str | Path, dtype: str) -> Path:
    """The folder of a GGUF file's dequantised model and tokenizer; written at the first call.

    The folder lies in ``$XDG_CACHE_HOME/kg-guardrail`` (by default ``~/.cache``) and takes as
    much room as the weights do in the dtype.

    Raises:
        OSError: The file is missing, or the cache cannot be written.
        ValueError: transformers does not know the file's architecture.
        ImportError: The package ``gguf`` is not installed.
    """
    path = Path(file).resolve()
    stat = path.stat()
    mark = hashlib.sha256(f"{path}:{stat.st_size}:{stat.st_mtime_ns}".encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kg-guardrail"
    target = cache / f"{path.stem}-{dtype}-{mark}"
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        _convert(path, dtype, Path(folder) / "model")
        try:
            (Path(folder) / "model").rename(target)
        except OSError:  # another process was first
            if not target.is_dir():
                raise
    return target


def _convert(path: Path, dtype: str, target: Path) -> None:
    import torch
    import transformers

    options: dict[str, object] = {"gguf_file": path.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, **options)
    if hasattr(transformers, "GgufConfig"):  # newer releases would keep weights packed, in float32
        options["quantization_config"] = transformers.GgufConfig(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, dtype=getattr(torch, dtype), **options
    )
    tokenizer.save_pretrained(target)
    model.save_pretrained(target)
