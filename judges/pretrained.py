"""Loads published models by their auto class, and two that need code of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, TypedDict

from guardrail.core.errors import ConfigError, JudgeError, MissingExtraError
from guardrail.core.workers import usable_cpus

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    Loaded = tuple[PreTrainedModel, PreTrainedTokenizerBase]


class _ModelConfig(TypedDict, total=False):
    """The fields of a model's ``config.json`` that are read."""

    architectures: list[str] | None
    auto_map: dict[str, str]
    foundation: str
    id2label: dict[str, str] | None


def libraries() -> tuple[ModuleType, ModuleType]:
    """The packages torch and transformers; torch takes no more threads than a container may use.

    Raises:
        MissingExtraError: One of them is not installed.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtraError(error.name or "transformers", "gpu") from error
    torch.set_num_threads(min(torch.get_num_threads(), usable_cpus()))
    return torch, transformers


def chosen_dtype(device: str | None, dtype: str | None) -> tuple[str, str]:
    """Device and number format; by default the GPU if there is one, and bfloat16 on it.

    Raises:
        ConfigError: The number format is unknown.
        MissingExtraError: torch or transformers is missing.
    """
    torch, _ = libraries()
    if dtype not in (None, "bfloat16", "float16", "float32"):
        raise ConfigError(f"dtype is one of bfloat16, float16, float32, not {dtype!r}")
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return device, dtype or ("bfloat16" if device.startswith("cuda") else "float32")


def load_pretrained(model_id: str, *, kind: str, device: str, dtype: str) -> Loaded:
    """Load a model and its tokenizer, with scaled-dot-product attention if it supports that.

    Args:
        model_id: Model id or folder.
        kind: Auto class, such as ``AutoModelForSequenceClassification``.
        device: Device of the model.
        dtype: Number format of the weights.

    Raises:
        JudgeError: There is no such model, or it cannot be read.
        MissingExtraError: torch or transformers is missing.
    """
    torch, transformers = libraries()
    loader = getattr(transformers, kind)
    options = {"dtype": getattr(torch, dtype)}
    advice = "give a Hugging Face model id or a folder that holds one"
    with _reading(f"the model {model_id!r} cannot be loaded; {advice}"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(model_id)
        try:
            model = loader.from_pretrained(model_id, attn_implementation="sdpa", **options)
        except (ValueError, ImportError):  # an architecture without that kernel
            model = loader.from_pretrained(model_id, **options)
        return model.to(device).eval(), tokenizer


def config_of(model: str) -> _ModelConfig:
    """The configuration of a model, from its ``config.json``.

    Raises:
        JudgeError: There is no such model, or it has no configuration.
    """
    path = _file(model, "config.json")
    try:
        found: _ModelConfig = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise JudgeError(f"the configuration of {model!r} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise JudgeError(f"the configuration of {model!r} is not a JSON object")
    return found


def load_hhem(model: str, *, device: str, dtype: str) -> Loaded:
    """Load HHEM-2.1-open, a T5 encoder that classifies tokens, without running its own code.

    Raises:
        JudgeError: It does not exist, or is another model.
        MissingExtraError: torch or transformers is missing.
    """
    torch, transformers = libraries()
    from safetensors.torch import load_file

    foundation = str(config_of(model).get("foundation") or "google/flan-t5-base")
    path = _file(model, "model.safetensors")
    with _reading(
        f"{model!r} cannot be read as HHEM-2.1-open; download it again, or name another judge"
    ):
        state = {name.removeprefix("t5."): value for name, value in load_file(path).items()}
        config = transformers.AutoConfig.from_pretrained(foundation, num_labels=2)
        tokenizer = transformers.AutoTokenizer.from_pretrained(foundation)
        made = transformers.T5ForTokenClassification(config)
        tied = ("shared.weight", "embed_tokens.weight")  # the shared embedding table
        table = next(value for name, value in state.items() if name.endswith(tied))
        made.load_state_dict(
            {name: table if name.endswith(tied) else state[name] for name in made.state_dict()}
        )
    return made.to(device=device, dtype=getattr(torch, dtype)).eval(), tokenizer


def load_alignscore(model: str, *, size: str, device: str, dtype: str) -> Loaded:
    """Load AlignScore from its checkpoint: RoBERTa, and the head of three labels.

    Args:
        model: Model id, or a folder with the checkpoint. The folder's configuration and
            tokenizer of RoBERTa are used if there are any, else those of the hub.
        size: ``base`` or ``large``.
        device: Device of the model.
        dtype: Number format of the weights.

    Returns:
        A module with logits of three labels (the first is *aligned*), and its tokenizer.

    Raises:
        JudgeError: It does not exist, or is another model.
        MissingExtraError: torch or transformers is missing.
    """
    torch, transformers = libraries()
    path = _file(model, f"AlignScore-{size}.ckpt")
    backbone = model if (Path(model) / "config.json").is_file() else f"FacebookAI/roberta-{size}"

    class Aligned(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, config: PretrainedConfig) -> None:
            super().__init__()
            self.base_model = transformers.RobertaModel(config)
            self.tri_layer = torch.nn.Linear(config.hidden_size, 3)

        def forward(self, **inputs: Tensor) -> SimpleNamespace:
            pooled = self.base_model(**inputs).pooler_output
            return SimpleNamespace(logits=self.tri_layer(pooled))

    with _reading(
        f"{model!r} cannot be read as AlignScore-{size}; download it again, or name another judge"
    ):
        made = Aligned(transformers.AutoConfig.from_pretrained(backbone))
        tokenizer = transformers.AutoTokenizer.from_pretrained(backbone)
        # weights_only: a checkpoint is a pickle, and must not run anything.
        state = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
        made.load_state_dict({name: state[name] for name in made.state_dict()})
    return made.to(device=device, dtype=getattr(torch, dtype)).eval(), tokenizer


def _file(model: str, name: str) -> Path:
    """A file of a model, from its folder, the local cache or the hub."""
    from transformers.utils.hub import cached_file

    cause, found = None, None
    try:
        found = cached_file(model, name)
    except Exception as error:  # of the hub's client, whose kinds differ between versions
        cause = error
    if found is None:
        raise JudgeError(
            f"the model {model!r} cannot be read: it has no {name}; give a Hugging Face model "
            f"id or a folder that holds one{f' ({cause})' if cause else ''}"
        ) from cause
    return Path(found)


@contextmanager
def _reading(failure: str) -> Iterator[None]:
    """Raise a JudgeError with a message of ours for whatever the libraries raise."""
    try:
        yield
    except Exception as error:
        raise JudgeError(f"{failure} ({type(error).__name__}: {error})") from error
