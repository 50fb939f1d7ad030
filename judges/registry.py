"""Judges by name, such as ``onnx``, ``hf:…`` or ``chat:…``, and custom ones."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import cast

from guardrail.core.errors import ConfigError
from guardrail.core.plugins import NOWHERE, external_errors, named_part
from judges.base import AttributionJudge, NLIJudge

_FACTORIES: dict[str, str | Callable[..., object]] = {
    "onnx": "judges.onnx:open_judge",
    "minilm": "judges.onnx:OnnxJudge",
    "hf": "judges.hf:open_hf",
    "transformers": "judges.hf:nli_classifier",
    "t5-true": "judges.hf:t5_true",
    "chat": "judges.chat:ChatJudge",
}

_NEEDS_MODEL = {
    "hf": "hf:lytang/MiniCheck-RoBERTa-Large",
    "transformers": "transformers:facebook/bart-large-mnli",
    "t5-true": "t5-true:google/t5_xxl_true_nli_mixture",
    "chat": "chat:gpt-4o",
}
"""Judges that name a model after the colon, each with an example."""


def register(kind: str, factory: str | Callable[..., object]) -> None:
    """Add a kind of judge, or replace one.

    Args:
        kind: The part of a judge's name before the colon.
        factory: Makes the judge from the part after the colon (None if it is empty) and the
            options; a callable, or ``"module:attribute"``, imported on first use.
    """
    _FACTORIES[kind] = factory


def create_nli(name: str = "onnx", **options: object) -> NLIJudge:
    """Make the NLI judge that a name stands for; nothing is loaded yet.

    Args:
        name: ``onnx`` (the shipped judge), ``minilm`` (its smaller model alone), ``onnx:FOLDER``,
            ``hf:MODEL``, ``transformers:MODEL``, ``t5-true:MODEL``, ``chat:MODEL``; a model is an
            id or a path. Of another package, the name of an entry point of
            ``kg_guardrail.judges``, or ``module:Class``.
        options: Passed to the judge, e.g. ``threads=4`` or ``base_url="http://…"``.

    Raises:
        ConfigError: The name or an option is unknown.
    """
    judge = _create(name, options)
    if not isinstance(judge, NLIJudge):
        missing = [need for need in ("name", "warm_up", "judge") if not hasattr(judge, need)]
        raise ConfigError(
            f"judge {name!r} lacks {', '.join(missing)}; it needs name, warm_up, judge, as "
            "docs/extending.md shows. One that has only ground is handed in: Guardrail(grounding=…)"
        )
    return judge


def create_attribution(name: str = "onnx", **options: object) -> AttributionJudge:
    """Make the attribution judge that a name stands for; nothing is loaded yet.

    A judge that only does NLI is lifted to CAQA's categories (``judges.lifting``).

    Raises:
        ConfigError: The name or an option is unknown.
    """
    judge = _create(name, options)
    if isinstance(judge, AttributionJudge):
        return judge
    from judges.lifting import LiftedJudge

    return LiftedJudge(cast("NLIJudge", judge))


def _create(name: str, options: dict[str, object]) -> object:
    kind, colon, model = name.partition(":")
    factory = _FACTORIES.get(kind)
    arguments: tuple[str | None, ...] = (model or None,)
    if factory is None:
        factory, arguments = _from_outside(name, kind, model)
    elif kind in _NEEDS_MODEL and not model:
        raise ConfigError(f"judge {kind!r} needs a model, as in {_NEEDS_MODEL[kind]!r}")
    elif colon and not model:
        raise ConfigError(f"nothing follows the colon in judge {name!r}")
    if isinstance(factory, str):
        module, _, attribute = factory.partition(":")
        factory = cast("Callable[..., object]", getattr(import_module(module), attribute))
    with external_errors(f"judge {name!r}", ConfigError):
        try:
            return factory(*arguments, **options)
        except TypeError as error:
            raise ConfigError(f"judge {name!r} does not take these options: {error}") from error


def _from_outside(
    name: str, kind: str, model: str
) -> tuple[Callable[..., object], tuple[str, ...]]:
    """A judge of another package: by an entry point ``kind``, or ``name`` as ``module:Class``."""
    make = named_part("judges", kind) if kind.isidentifier() else None
    arguments = (model,) if model else ()
    if make is None:
        make, arguments = named_part("judges", name), ()
    if make is None:
        advice = f"; {NOWHERE}" if model and model.isidentifier() else ""
        raise ConfigError(f"there is no judge {name!r}; {hint(name, _FACTORIES)}{advice}")
    return make, arguments


def kinds() -> tuple[str, ...]:
    """Known kinds, including those that ``register`` added."""
    return tuple(_FACTORIES)


def hint(name: str, known: Iterable[str]) -> str:
    """Suggest a name in place of one of an unknown kind.

    Args:
        name: As written, with or without a colon.
        known: Kinds that are known.
    """
    known = list(known)
    kind, _, model = name.partition(":")
    near = None
    for item in sorted(known, key=len):
        # Another sign where the colon belongs: "chat-local" for "chat:local".
        if kind.startswith(item) and kind[len(item) : len(item) + 1] in ("-", "_", "/", "="):
            near = f"{item}:{name[len(item) + 1 :]}"
    if near is None and model in known:
        near = model
    if near is None and (close := difflib.get_close_matches(kind, known, n=1, cutoff=0.5)):
        near = f"{close[0]}:{model}".removesuffix(":")
    return f"did you mean {near!r}?" if near else f"known: {', '.join(known)}"
