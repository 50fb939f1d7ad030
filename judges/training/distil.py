"""Trains a large teacher, then a judge that learns from it: ``python -m judges.training.distil``.

``encode`` makes the rows on any machine; ``train`` needs them, torch and the two models alone, so
that it runs where a GPU is. ``python -m judges.training --weights FILE`` then exports, calibrates
and measures what it wrote.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from judges.training.plan import PLANS, Plan, read_plan

if TYPE_CHECKING:
    from judges.training.encoded import EncodedRows
    from judges.training.model import CrossEncoder

__all__ = ["main"]

TEACHER = "teacher.safetensors"
STUDENT = "student.safetensors"
LONGEST = 384
LABELLED_AT_ONCE = 131_072
"""Padded word pieces of a batch that the teacher labels."""

EXAMPLES = """\
  python -m judges.training.distil encode --data DATA --out rows.npz
  python -m judges.training.distil train --rows rows.npz --encoder MPNET --out OUT --device cuda
  python -m judges.training --weights OUT/student.safetensors --data DATA --out OUT"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Encode rows, or train a teacher and a student on them."""
    options = _options(arguments)
    if options.task == "encode":
        _encode(options)
    else:
        _train(options)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m judges.training.distil",
        description="Trains a large judge, and a small one that learns from it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tasks = parser.add_subparsers(dest="task", required=True)
    encode = tasks.add_parser("encode", help="write the plan's rows in word pieces to a file")
    encode.add_argument("--data", type=Path, required=True, help="the data folder")
    encode.add_argument("--out", type=Path, required=True, help="the file, .npz")
    encode.add_argument("--seed", type=int, default=13)
    train = tasks.add_parser("train", help="train a teacher and a student")
    train.add_argument("--rows", type=Path, required=True, help="what encode wrote")
    train.add_argument(
        "--encoder", type=Path, required=True, help="folder of the teacher's encoder"
    )
    train.add_argument("--judge", type=Path, help="folder of the judge to go on from")
    train.add_argument("--teacher-plan", type=Path, default=PLANS / "teacher.toml")
    train.add_argument("--plan", type=Path, default=PLANS / "student.toml")
    train.add_argument("--out", type=Path, required=True)
    train.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    return parser.parse_args(arguments)


def _encode(options: argparse.Namespace) -> None:
    from judges.onnx import SHIPPED
    from judges.training.batches import encode_rows, load_tokenizer
    from judges.training.encoded import write_encoded
    from judges.training.recipe import load_rows
    from judges.training.unlabelled import unlabelled_rows

    rows = load_rows(options.data, seed=options.seed)
    rows += unlabelled_rows(rows, seed=options.seed)
    encoded = encode_rows(load_tokenizer(SHIPPED / "tokenizer.json"), rows, LONGEST)
    write_encoded(encoded, options.out)
    print(f"{len(encoded):,} rows of {sum(len(row.ids) for row in encoded):,} word pieces")


def _train(options: argparse.Namespace) -> None:
    import torch

    from judges.heads import STATEMENT_MARK
    from judges.onnx import SHIPPED
    from judges.training.batches import load_tokenizer
    from judges.training.encoded import EncodedRows, read_encoded
    from judges.training.model import load_judge, load_pretrained, read_weights, write_weights
    from judges.training.soft_labels import soft_labels
    from judges.training.trainer import Trainer, interpolated

    teaching, learning = read_plan(options.teacher_plan), read_plan(options.plan)
    rows = read_encoded(options.rows)
    folder = options.judge or SHIPPED
    mark = load_tokenizer(folder / "tokenizer.json").token_to_id(STATEMENT_MARK)
    assert mark is not None, "every judge's tokenizer numbers statements"
    options.out.mkdir(parents=True, exist_ok=True)

    def trained(model: CrossEncoder, plan: Plan, encoded: EncodedRows, name: str) -> None:
        part = options.out / Path(name).stem
        part.mkdir(exist_ok=True)
        trainer = Trainer(model, encoded, plan, part, device=options.device)
        if (part / "last.pt").exists():
            trainer.resume(part / "last.pt")
        first = {name: values.detach().clone() for name, values in model.state_dict().items()}
        final = trainer.run()
        model.load_state_dict(interpolated(first, final, plan.keep))
        write_weights(model, options.out / name)

    torch.manual_seed(teaching.seed)
    if not (options.out / TEACHER).exists():
        large = load_pretrained(options.encoder, dropout=teaching.dropout)
        trained(large, teaching, EncodedRows(rows), TEACHER)
    teacher = read_weights(options.out / TEACHER)
    read = learning.sources
    rows = [row for row in rows if row.source in read]
    started = time.monotonic()
    soft = soft_labels(teacher, rows, mark=mark, tokens=LABELLED_AT_ONCE, device=options.device)
    print(f"the teacher read {len(rows):,} rows in {time.monotonic() - started:.0f} s", flush=True)
    student, _ = load_judge(folder, dropout=learning.dropout)
    trained(student, learning, EncodedRows(rows, soft), STUDENT)


if __name__ == "__main__":
    main()
