"""Published models that their libraries cannot load without code of their own."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypedDict

from guardrail.core.errors import JudgeError, MissingExtraError

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["config_of", "load_alignscore", "load_hhem"]


class ModelConfig(TypedDict, total=False):
    """What is read of a model's ``config.json``."""

    architectures: list[str] | None
    auto_map: dict[str, str]
    foundation: str
    id2label: dict[str, str] | None


HHEM_FOUNDATION = "google/flan-t5-base"
"""Whose configuration and tokenizer HHEM-2.1-open uses."""

TIED = ("shared.weight", "embed_tokens.weight")
"""Names of one and the same table of T5."""


def config_of(model: str) -> ModelConfig:
    """The configuration of a model, as it stands in its ``config.json``.

    Raises:
        JudgeError: There is no such model, or it has none.
        MissingExtraError: transformers is missing.
    """
    try:
        found: ModelConfig = json.loads(_file(model, "config.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise JudgeError(f"the configuration of {model!r} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise JudgeError(f"the configuration of {model!r} is no table")
    return found


def load_hhem(
    model: str, *, device: str, dtype: str
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load HHEM-2.1-open, a T5 encoder with a head for each token, without the code beside it.

    Raises:
        JudgeError: It is not there, or is another model.
        MissingExtraError: torch or transformers is missing.
    """
    torch, transformers = _libraries()
    from safetensors.torch import load_file

    foundation = str(config_of(model).get("foundation") or HHEM_FOUNDATION)
    path = _file(model, "model.safetensors")
    try:
        state = {name.removeprefix("t5."): value for name, value in load_file(path).items()}
        config = transformers.AutoConfig.from_pretrained(foundation, num_labels=2)
        tokenizer = transformers.AutoTokenizer.from_pretrained(foundation)
        made = transformers.T5ForTokenClassification(config)
        table = next(value for name, value in state.items() if name.endswith(TIED))
        made.load_state_dict(
            {name: table if name.endswith(TIED) else state[name] for name in made.state_dict()}
        )
    except Exception as error:
        raise _unreadable(model, "HHEM-2.1-open", error) from error
    return made.to(device=device, dtype=getattr(torch, dtype)).eval(), tokenizer


def load_alignscore(
    model: str, size: str, *, device: str, dtype: str
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load AlignScore from its checkpoint: RoBERTa, and the head of three labels.

    Args:
        model: Model id, or a folder with the checkpoint. Where the folder has a configuration and
            tokenizer of RoBERTa they are used, else those of the hub.
        size: ``base`` or ``large``.
        device: Where the model goes.
        dtype: Number format of the weights.

    Returns:
        A module that gives logits of three labels, the first of which is *aligned*, and its
        tokenizer.

    Raises:
        JudgeError: It is not there, or is another model.
        MissingExtraError: torch or transformers is missing.
    """
    torch, transformers = _libraries()
    path = _file(model, f"AlignScore-{size}.ckpt")
    backbone = model if (Path(model) / "config.json").is_file() else f"FacebookAI/roberta-{size}"

    class Aligned(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, config: PretrainedConfig) -> None:
            super().__init__()
            self.base_model = transformers.RobertaModel(config)
            self.tri_layer = torch.nn.Linear(config.hidden_size, 3)

        def forward(self, **inputs: Tensor) -> Tensor:
            logits: Tensor = self.tri_layer(self.base_model(**inputs).pooler_output)
            return logits

    try:
        made = Aligned(transformers.AutoConfig.from_pretrained(backbone))
        tokenizer = transformers.AutoTokenizer.from_pretrained(backbone)
        # weights_only: a checkpoint is a pickle, and must not run anything.
        state = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
        made.load_state_dict({name: state[name] for name in made.state_dict()})
    except Exception as error:
        raise _unreadable(model, f"AlignScore-{size}", error) from error
    return made.to(device=device, dtype=getattr(torch, dtype)).eval(), tokenizer


def _libraries() -> tuple[ModuleType, ModuleType]:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtraError(error.name or "transformers", "gpu") from error
    return torch, transformers


def _file(model: str, name: str) -> Path:
    """A file of a model: of its folder, the local cache or the hub."""
    try:
        from transformers.utils.hub import cached_file
    except ImportError as error:
        raise MissingExtraError("transformers", "gpu") from error
    cause: Exception | None = None
    found: str | None = None
    try:
        found = cached_file(model, name)
    except Exception as error:  # of the hub's client, whose kinds differ between versions
        cause = error
    if found is None:
        raise JudgeError(
            f"the model {model!r} cannot be read: {name} is not there; give a Hugging Face model "
            f"id or a folder that holds one{f' ({cause})' if cause else ''}"
        ) from cause
    return Path(found)


def _unreadable(model: str, wanted: str, error: Exception) -> JudgeError:
    return JudgeError(
        f"{model!r} cannot be read as {wanted} ({type(error).__name__}: {error}); download it "
        "again, or name another judge"
    )
