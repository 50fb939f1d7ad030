"""Trains, publishes and calibrates the judge: ``python -m training COMMAND …``."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]

EXAMPLES = """\
build the kit from the data folder and the published encoder:
  python -m training pack --data DATA --base all-mpnet-base-v2 --out KIT
train in slices, here or on another machine:
  python -m training run --kit KIT --out RUN --device cuda --minutes 9 --total 27 --resume
write the checkpoint in 8 bits, and calibrate it:
  python -m training publish --kit KIT --checkpoint RUN/judge --base all-mpnet-base-v2 \\
      --data DATA --out JUDGE
  python -m training calibrate --data DATA --judge JUDGE
measure it, also on unseen authors:
  python -m training measure --data DATA --judge JUDGE

Use the judge as --judge onnx:JUDGE."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command."""
    parser = argparse.ArgumentParser(
        prog="python -m training",
        description="Trains, publishes and calibrates the judge.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, add in (
        ("pack", _pack),
        ("run", _run),
        ("publish", _publish),
        ("compact", _compact),
        ("calibrate", _calibrate),
        ("measure", _measure),
    ):
        add(commands.add_parser(name, description=_HELP[name], help=_HELP[name]))
    options = parser.parse_args(arguments)
    _COMMANDS[options.command](options)


_HELP = {
    "pack": "Build the kit: tokenised rows and start weights in parts below 45 MB.",
    "run": "Train from a kit, with torch and NumPy alone.",
    "publish": "Write a checkpoint in 8 bits, compare it with 32, and fit its probes.",
    "compact": "Write a checkpoint in 8 bits, to train on from it.",
    "calibrate": "Fit calibrations and the weights of checks on held-out statements.",
    "measure": "Print AUC on held-out statements and on unseen authors.",
}


def _pack(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="the data folder")
    parser.add_argument("--base", type=Path, required=True, help="folder of the encoder")
    parser.add_argument("--out", type=Path, required=True, help="where the kit goes")
    parser.add_argument(
        "--plan",
        type=Path,
        default=Path(__file__).with_name("judge.toml"),
        help="shares of the families, in TOML",
    )


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kit", type=Path, required=True, help="folder of the kit")
    parser.add_argument("--out", type=Path, required=True, help="where results go")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--minutes", type=float, required=True, help="length of this slice")
    parser.add_argument("--total", type=float, help="minutes of all slices; this one by default")
    parser.add_argument("--resume", action="store_true", help="continue from OUT")
    parser.add_argument("--start", type=Path, help="checkpoint to start from")
    parser.add_argument("--rate", type=float, default=6e-5, help="peak learning rate")
    parser.add_argument("--tokens", type=int, help="tokens of a step; 2400 on cpu, 24000 on cuda")
    parser.add_argument("--freeze", type=int, default=6, help="lower layers that are not trained")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1, help="cores that train side by side")


def _publish(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kit", type=Path, required=True, help="folder of the kit")
    parser.add_argument("--checkpoint", type=Path, required=True, help="RUN/judge, or a .pt file")
    parser.add_argument("--base", type=Path, required=True, help="folder of the encoder")
    parser.add_argument("--data", type=Path, help="the data folder, to fit probes on")
    parser.add_argument("--out", type=Path, required=True, help="folder of the judge")
    parser.add_argument("--version", default="3.0.0", help="version of the weights")
    parser.add_argument(
        "--most", type=int, default=2_000, help="sentences that probes are fitted on"
    )


def _compact(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--checkpoint", type=Path, required=True, help="RUN/judge, or a .pt file")
    parser.add_argument("--out", type=Path, required=True, help="start of the names of its parts")


def _calibrate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="the data folder")
    parser.add_argument("--judge", type=Path, required=True, help="folder of the judge")
    parser.add_argument("--most", type=int, help="most statements; all by default")


def _measure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="the data folder")
    parser.add_argument("--judge", type=Path, required=True, help="folder of the judge")
    parser.add_argument("--most", type=int, help="most evidence sets of each; all by default")
    parser.add_argument("--rows", type=int, default=300, help="most rows of each set of pairs")
    parser.add_argument("--card", action="store_true", help="write the model card, README.md")


def _do_pack(options: argparse.Namespace) -> None:
    from training.pack import pack_kit

    plan = tomllib.loads(options.plan.read_text("utf-8"))
    kit = pack_kit(
        options.data, options.base, options.out, shares=plan["shares"], most=plan.get("most", {})
    )
    measured = {f"measured: {name}": items for name, items in kit.validation.items()}
    for name, items in (kit.families | measured).items():
        print(f"{name}: {len(items):,} sets, {sum(len(item.claims) for item in items):,} sentences")


def _do_run(options: argparse.Namespace) -> None:
    from training.run import run

    run(
        options.kit,
        options.out,
        device=options.device,
        minutes=options.minutes,
        total=options.total,
        resume=options.resume,
        start=options.start,
        rate=options.rate,
        tokens=options.tokens or (24_000 if options.device == "cuda" else 2_400),
        freeze=options.freeze,
        seed=options.seed,
        processes=options.processes,
    )


def _do_publish(options: argparse.Namespace) -> None:
    from training.publish import publish

    compared = publish(
        options.checkpoint,
        options.kit,
        options.out,
        tokenizer=options.base / "tokenizer.json",
        version=options.version,
        data=options.data,
        most=options.most,
    )
    print(f"8 bits against 32: {compared._asdict()}")


def _do_compact(options: argparse.Namespace) -> None:
    from training.kit import PART, read_state, write_state

    write_state(options.out, read_state(options.checkpoint), size=PART, compact=True)


def _do_calibrate(options: argparse.Namespace) -> None:
    from training.calibration import calibrate

    print(calibrate(options.judge, options.data, most=options.most))


def _do_measure(options: argparse.Namespace) -> None:
    from training.measuring import areas_table, pairs_table, write_card

    tables = [
        areas_table(options.judge, options.data, most=options.most),
        pairs_table(options.judge, options.data, most=options.rows),
    ]
    print("\n\n".join(tables))
    if options.card:
        write_card(options.judge, "\n\n".join(tables))


_COMMANDS = {
    "pack": _do_pack,
    "run": _do_run,
    "publish": _do_publish,
    "compact": _do_compact,
    "calibrate": _do_calibrate,
    "measure": _do_measure,
}

if __name__ == "__main__":
    main()
