"""A tiny judge that encodes evidence once, with random weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from judges.evidence_judge import PROBES, Probe, write_probes
from judges.session import write_sums
from judges.window_reader import claims_of, windows_of
from tests.judges.tiny import LETTERS, WORDS
from training.export import measure_ranges, write_graph
from training.kit import Item, Kit
from training.window_model import LABELS, Sizes, WindowModel, pack

SPECIAL = ("<s>", "<pad>", "</s>", "[UNK]")


def write_base(folder: Path) -> Path:
    """An encoder as it is published: ``config.json``, ``tokenizer.json``, ``model.safetensors``."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = dict.fromkeys([*SPECIAL, *WORDS, *LETTERS, *(f"##{c}" for c in LETTERS)])
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    sizes = Sizes(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, relative_attention_num_buckets=32,
    )  # fmt: skip
    (folder / "config.json").write_text(json.dumps(sizes._asdict()), "utf-8")
    torch.manual_seed(0)
    state = WindowModel(sizes).state_dict()
    published = {
        name.removeprefix("encoder."): (value * 8 if value.ndim == 2 else value).contiguous()
        for name, value in state.items()
        if name.startswith("encoder.")
    }
    save_file(published, folder / "model.safetensors")
    return folder


def items_of(base: Path) -> list[Item]:
    """Four evidence sets with two claims each."""
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    start, end = (tokenizer.token_to_id(token) for token in ("<s>", "</s>"))

    def ids(text: str) -> list[int]:
        found: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return found

    made = []
    for city, other in (("rome", "paris"), ("paris", "florence"), ("florence", "rome")):
        parts = [ids(f"artemisia, place of birth: {city}."), ids("artemisia, occupation: painter.")]
        windows = [one for one, _ in windows_of(parts, start=start, end=end, closed=True)]
        claims = [
            claims_of(ids("where was she born?"), ids(f"artemisia was born in {place}."), end=end)[
                0
            ]
            for place in (city, other)
        ]
        made.append(Item(tuple(windows), tuple(claims), (1, 4), True))
    return made


def tiny_kit(base: Path) -> Kit:
    """A kit of the tiny encoder."""
    from safetensors.torch import load_file

    items = items_of(base)
    alone = [item._replace(claims=item.claims[:1], labels=item.labels[:1]) for item in items]
    return Kit(
        Sizes.read(base / "config.json"),
        load_file(base / "model.safetensors"),
        {"hard": items, "snli_dev": alone},
        {"hard": 1.0, "snli_dev": 1.0},
        {"valid": items, "snli_dev": alone},
    )


def write_judge(folder: Path, base: Path) -> Path:
    """A judge with random heads and probes."""
    kit = tiny_kit(base)
    model = WindowModel(kit.sizes)
    model.load(kit.start)
    model.eval()
    batches = [pack([(item.windows, item.claims)]) for item in items_of(base)]
    write_graph(model, folder, measure_ranges(model, batches))
    (folder / "tokenizer.json").write_bytes((base / "tokenizer.json").read_bytes())
    card = {"name": "tiny", "version": "1", "max_length": 512, "labels": {"verdict": list(LABELS)}}
    (folder / "judge.json").write_text(json.dumps(card), "utf-8")
    rng = np.random.default_rng(0)
    heads = kit.sizes.num_hidden_layers * kit.sizes.num_attention_heads
    width = kit.sizes.hidden_size
    features = {"statements": heads + -(-heads // 4) + 4, "words": width}
    write_probes(
        folder,
        {
            name: Probe(
                np.zeros(size, np.float32),
                np.ones(size, np.float32),
                *(
                    rng.normal(0, 1, shape).astype(np.float32)
                    for shape in ((size, 8), (8,), (8, count), (count,))
                ),
            )
            for name, count in PROBES.items()
            for size in (features.get(name, 2 * width),)
        },
    )
    write_sums(folder)
    return folder
