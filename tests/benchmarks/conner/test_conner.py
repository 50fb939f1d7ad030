"""CONNER's benchmark: its spoilt twins, what counts as a failure, and knowledge selection."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.conner.likelihoods import KeptLikelihoods
from benchmarks.conner.selection import Selection, run_selection
from benchmarks.conner.trials import Text, trials
from guardrail.core.errors import ConfigError
from guardrail.models import open_model
from judges.base import TokenLikelihoods
from judges.causal_lm import TransformersCausalLM
from judges.conner import ConnerModels, Perspective
from judges.encoder import create_encoder
from judges.registry import create_nli
from tests.judges.tiny_gguf import as_folder, llama_server, write_gguf

TEXTS = [
    Text(
        "Where was Ada Lovelace born?",
        "The mathematician Ada Lovelace was born in London in 1815. She wrote the first program. "
        "It was made for a machine of Charles Babbage. He never finished it.",
        "London",
        "Ada Lovelace",
    ),
    Text(
        "How high is Mount Kenya?",
        "The mountain called Mount Kenya is 5199 metres high. It is an old volcano. "
        "Its glaciers shrink from year to year. People climb it by way of Point Lenana.",
        "5199 metres",
        "Mount Kenya",
    ),
]


def test_each_trial_spoils_one_thing() -> None:
    found = {trial.perspective: trial.pairs for trial in trials(TEXTS, set(Perspective))}
    for right, wrong in found[Perspective.FACTUALITY]:
        pairs = zip(right.sentences, wrong.sentences, strict=True)
        assert sum(item != other for item, other in pairs) == 1
        assert right.evidence == wrong.evidence == (right.knowledge,)
    for right, wrong in found[Perspective.COHERENCE_PARAGRAPH]:
        assert right.sentences != wrong.sentences
        assert sorted(right.sentences) == sorted(wrong.sentences)
    for right, wrong in found[Perspective.COHERENCE_SENTENCE]:
        for sentence, other in zip(right.sentences, wrong.sentences, strict=True):
            assert sorted(sentence.split()) == sorted(other.split())
    for right, wrong in found[Perspective.HELPFULNESS]:
        assert (right.query, right.answer) == (wrong.query, wrong.answer)
        assert right.knowledge != wrong.knowledge


def test_a_stopped_run_goes_on_with_the_likelihoods_it_had(tmp_path: Path) -> None:
    class Counted:
        name = "counted"
        asked: list[tuple[str, str]] = []  # noqa: RUF012

        def loglikelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[TokenLikelihoods]:
            self.asked += pairs
            return [TokenLikelihoods((end,), (-float(len(end)),)) for _, end in pairs]

    file = tmp_path / "likelihoods.jsonl"
    model = Counted()
    KeptLikelihoods(model, file).loglikelihoods([("a", "b"), ("a", "b"), ("", "bcd")])
    again = KeptLikelihoods(model, file)
    scored = again.loglikelihoods([("a", "b"), ("", "bcd"), ("", "x")])
    assert [item.logprobs for item in scored] == [(-1.0,), (-3.0,), (-1.0,)]
    assert model.asked == [("", "bcd"), ("a", "b"), ("", "x")]
    file.write_text("[1]\n")
    with pytest.raises(ConfigError, match="likelihoods"):
        KeptLikelihoods(model, file)


def test_selection_keeps_its_samples_and_judges_every_way_of_choosing(tmp_path: Path) -> None:
    weights = write_gguf(tmp_path / "tiny.gguf")
    encoder = create_encoder()
    models = ConnerModels(
        nli=create_nli("onnx"),
        encoder=encoder,
        causal=TransformersCausalLM(str(as_folder(weights)), device="cpu", dtype="float32"),
    )
    plan = Selection(rows=2, samples=2, seed=1, model="completion:tiny")
    file = tmp_path / "samples.jsonl"
    with llama_server(weights, parallel=2) as url:
        model = open_model("completion:tiny", base_url=f"{url}/v1", api_key="k")
        table = run_selection(plan, TEXTS, model, models, file)
    ways = {line.way: line for line in table.lines}
    mean, best = ways["mean of all samples"], ways["best possible"]
    assert mean.gain is None
    assert best.helpfulness >= ways["Q_know"].helpfulness >= 0
    assert best.helpfulness >= mean.helpfulness
    assert len(file.read_text("utf-8").splitlines()) == 2
    # Everything is in the file, so that no model is asked for more.
    missing = open_model("completion:tiny", base_url="http://127.0.0.1:9/v1", api_key="k")
    assert run_selection(plan, TEXTS, missing, models, file).rows() == table.rows()
    assert "Table 8" in table.text()
    file.write_text("{}\n")
    with pytest.raises(ConfigError, match="samples"):
        run_selection(plan, TEXTS, model, models, file)
