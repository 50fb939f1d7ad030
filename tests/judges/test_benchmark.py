from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.judges import load_pairs, main, measure_concurrency
from benchmarks.judges_gpu import Shape, measure_shape
from guardrail.core.errors import InputError

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

ROBERTA = {
    "vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 32, "max_position_embeddings": 514, "num_labels": 3,
}  # fmt: skip
T5 = {
    "vocab_size": 64, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
    "feed_forward_proj": "gated-gelu", "decoder_start_token_id": 0,
}  # fmt: skip


TINY = [
    Shape(name="tiny roberta", kind="RobertaForSequenceClassification", config="RobertaConfig",
          sizes=ROBERTA),
    Shape(name="tiny T5", kind="T5ForConditionalGeneration", config="T5Config", sizes=T5,
          one_step=True),
]  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nli")
    rows = [{"premise": f"born in rome {n}", "hypothesis": f"the {n}"} for n in range(512)]
    with gzip.open(folder / "a.jsonl.gz", "wt") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    with gzip.open(folder / "tables.jsonl.gz", "wt") as out:
        out.write('{"table_id": "T1"}\n')
    return folder


def test_merged_calls_are_measured_and_equal_the_single_ones(
    data: Path, judge_folder: Path
) -> None:
    results = measure_concurrency(load_pairs(data, 512), folder=judge_folder, rounds=1)
    assert [result.distinct_share for result in results] == [1, 0.25]
    assert all(result.largest_difference <= 1e-4 for result in results)
    assert all(result.p95_ms >= result.p50_ms > 0 for result in results)
    assert all(result.sequential_busy_cores > 0 for result in results)


@pytest.mark.parametrize("shape", TINY, ids=lambda shape: shape.name)
def test_gpu_shapes_run_on_a_small_scale(shape: Shape) -> None:
    speed = measure_shape(shape, device="cpu", pairs=40, matmul_size=32)
    assert speed.pairs_per_s > 0
    assert speed.single_pairs_per_s > 0
    assert speed.share > 0


def test_without_a_gpu_nothing_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert main(["gpu"]) == 1
    assert capsys.readouterr().out == ""


def test_a_folder_without_pairs_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no NLI files"):
        load_pairs(tmp_path, 10)
