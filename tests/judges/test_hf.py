"""Judges that people know are asked as their own code asks them, tried on tiny random models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guardrail.core.errors import JudgeError
from guardrail.core.types import Verdict
from judges import create_nli
from judges.base import GroundingItem, GroundingJudge, NLIJudge, Pair
from judges.batching import even_chunks, sentence_chunks
from judges.hf import KNOWN, HFJudge, label_columns, open_hf
from judges.span_marker import marker_prompt
from tests.judges.tiny import WORDS, t5_config, write_tokenizer

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

PAIRS = [
    Pair("she was born in rome. she was a painter.", "the painter is of rome."),
    Pair("florence is in the place of birth", "artemisia was a sculptor"),
]
LONG = Pair(" ".join(f"she was born in {word}." for word in ["rome", "paris"] * 150), "in paris.")


def tokenizer_of(folder: Path) -> int:
    """Write a tokenizer with the marks of a model's family; its size."""
    write_tokenizer(folder)
    marks = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "eos": "[SEP]"}
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"),
        **{f"{name}_token": mark for name, mark in marks.items()},
    )
    made.save_pretrained(folder)
    return len(made)


def small(**more: object) -> dict[str, object]:
    return {
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 32, "initializer_range": 0.5, "pad_token_id": 0, **more,
    }  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model of each family, under the name that it has on the hub."""
    root = tmp_path_factory.mktemp("hub")
    torch.manual_seed(0)

    def folder(name: str) -> tuple[Path, int]:
        (root / name).mkdir()
        return root / name, tokenizer_of(root / name)

    place, size = folder("MiniCheck-RoBERTa-Large")
    config = transformers.RobertaConfig(
        vocab_size=size, max_position_embeddings=514, num_labels=2, **small()
    )
    transformers.RobertaForSequenceClassification(config).save_pretrained(place)
    for name in ("MiniCheck-DeBERTa-v3-Large", "FactCG-DeBERTa-v3-Large"):
        place, size = folder(name)
        config = transformers.DebertaV2Config(
            vocab_size=size, relative_attention=True, position_buckets=32,
            pos_att_type=["p2c", "c2p"], type_vocab_size=0, position_biased_input=False,
            num_labels=2, **small(),
        )  # fmt: skip
        transformers.DebertaV2ForSequenceClassification(config).save_pretrained(place)
    place, size = folder("MiniCheck-Flan-T5-Large")
    transformers.T5ForConditionalGeneration(
        t5_config(size, initializer_factor=3.0)
    ).save_pretrained(place)
    write_hhem(folder("hallucination_evaluation_model"))
    write_alignscore(folder("AlignScore"))
    place, size = folder("lettucedect-base-modernbert-en-v1")
    config = transformers.ModernBertConfig(
        vocab_size=size, num_labels=2, max_position_embeddings=4_200, cls_token_id=2,
        sep_token_id=3, bos_token_id=2, eos_token_id=3, initializer_cutoff_factor=2.0, **small(),
    )  # fmt: skip
    model = transformers.ModernBertForTokenClassification(config)
    torch.nn.init.normal_(model.classifier.weight, std=3.0)
    model.save_pretrained(place)
    return root


def write_hhem(made: tuple[Path, int]) -> None:
    """As it is published: the weights of ``t5.``, the configuration and tokenizer elsewhere."""
    from safetensors.torch import save_file

    place, size = made
    foundation = place / "foundation"
    foundation.mkdir()
    tokenizer_of(foundation)
    config = t5_config(size, initializer_factor=3.0, num_labels=2)
    config.save_pretrained(foundation)
    model = transformers.T5ForTokenClassification(config)
    torch.nn.init.normal_(model.classifier.weight, std=3.0)
    model.save_pretrained(place / "reference")
    state = {
        f"t5.{name}": value.contiguous()
        for name, value in model.state_dict().items()
        if not name.endswith("embed_tokens.weight")
    }
    save_file(state, place / "model.safetensors")
    published = {
        "architectures": ["HHEMv2ForSequenceClassification"],
        "auto_map": {"AutoConfig": "configuration_hhem_v2.HHEMv2Config"},
        "model_type": "HHEMv2Config",
        "foundation": str(foundation),
    }
    (place / "config.json").write_text(json.dumps(published))


def write_alignscore(made: tuple[Path, int]) -> None:
    """As it is published: a checkpoint of Lightning with the encoder and four heads."""
    place, size = made
    config = transformers.RobertaConfig(vocab_size=size, max_position_embeddings=514, **small())
    config.save_pretrained(place)
    encoder = transformers.RobertaModel(config)
    state = {f"base_model.{name}": value for name, value in encoder.state_dict().items()}
    for head, width in (("tri", 3), ("bin", 2), ("reg", 1)):
        state[f"{head}_layer.weight"] = torch.randn(width, 16) * 2
        state[f"{head}_layer.bias"] = torch.randn(width)
    state["mlm_head.bias"] = torch.zeros(size)
    for name in ("large", "base"):
        kept = {"state_dict": state, "hyper_parameters": {"model": "roberta-large"}, "epoch": 3}
        torch.save(kept, place / f"AlignScore-{name}.ckpt")


def judge_of(models: Path, name: str) -> NLIJudge:
    return create_nli(f"hf:{models / name}", device="cpu")


def classified(model: object, ids: list[int]) -> list[float]:
    with torch.no_grad():
        [row] = model(input_ids=torch.tensor([ids])).logits.softmax(-1).tolist()
    return row


def auto(kind: str, folder: Path) -> tuple[object, object]:
    model = getattr(transformers, kind).from_pretrained(folder).eval()
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def minicheck(folder: Path, pair: Pair) -> float:
    """``tokenizer(eos.join([doc, claim]))``, and the second of two labels is support."""
    model, tokenizer = auto("AutoModelForSequenceClassification", folder)
    ids = tokenizer(tokenizer.eos_token.join(pair), truncation=True, max_length=512)["input_ids"]
    return classified(model, ids)[1]


def factcg(folder: Path, pair: Pair) -> float:
    model, tokenizer = auto("AutoModelForSequenceClassification", folder)
    document = pair.premise.replace(". ", ".\n")
    text = (
        f"{document}\n\nChoose your answer: based on the paragraph above can we conclude that "
        f'"{pair.hypothesis}"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is '
    )
    return classified(model, tokenizer(text)["input_ids"])[1]


def says_one(folder: Path, text: str) -> float:
    """One step of the decoder, "1" against "0"."""
    model, tokenizer = auto("T5ForConditionalGeneration", folder)
    zero, one = tokenizer.convert_tokens_to_ids(["0", "1"])
    with torch.no_grad():
        logits = model(
            input_ids=torch.tensor([tokenizer(text)["input_ids"]]),
            decoder_input_ids=torch.zeros((1, 1), dtype=torch.long),
        ).logits[:, 0]
    return logits[:, [zero, one]].softmax(-1)[0, 1].item()


def minicheck_t5(folder: Path, pair: Pair) -> float:
    return says_one(folder, f"predict: {pair.premise}[SEP]{pair.hypothesis}")


def hhem(folder: Path, pair: Pair) -> float:
    """The first token is classified; the model's own code is not run."""
    model = transformers.T5ForTokenClassification.from_pretrained(folder / "reference").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "foundation")
    text = (
        "<pad> Determine if the hypothesis is true given the premise?\n\n"
        f"Premise: {pair.premise}\n\nHypothesis: {pair.hypothesis}"
    )
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([tokenizer(text)["input_ids"]])).logits
    return logits[0, 0].softmax(-1)[1].item()


def aligned(folder: Path, pair: Pair) -> float:
    """The first of three labels."""
    folder = folder.with_name("AlignScore")
    state = torch.load(folder / "AlignScore-large.ckpt", weights_only=True)["state_dict"]
    encoder = transformers.RobertaModel(transformers.AutoConfig.from_pretrained(folder)).eval()
    encoder.load_state_dict(
        {k.removeprefix("base_model."): v for k, v in state.items() if k.startswith("base_model.")}
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    premise, claim = tokenizer(list(pair), add_special_tokens=False)["input_ids"]
    ids = [2, *premise, 3, 3, *claim, 3]  # RoBERTa's <s> a </s></s> b </s>
    with torch.no_grad():
        pooled = encoder(input_ids=torch.tensor([ids])).pooler_output
    logits = pooled @ state["tri_layer.weight"].T + state["tri_layer.bias"]
    return logits.softmax(-1)[0, 0].item()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MiniCheck-RoBERTa-Large", minicheck),
        ("MiniCheck-DeBERTa-v3-Large", minicheck),
        ("MiniCheck-Flan-T5-Large", minicheck_t5),
        ("FactCG-DeBERTa-v3-Large", factcg),
        ("hallucination_evaluation_model", hhem),
        ("AlignScore", aligned),
        ("AlignScore-base", aligned),
    ],
)
def test_a_checker_reads_as_its_own_code_does(models, name, expected):
    judge = judge_of(models, name)
    scores = judge.judge(PAIRS)
    for pair, score in zip(PAIRS, scores, strict=True):
        assert score.entailment == pytest.approx(expected(models / name, pair), abs=1e-4)
        assert score.contradiction == 0.0
    assert abs(scores[0].entailment - scores[1].entailment) > 1e-5
    if name.startswith("AlignScore"):
        assert judge.name.endswith("base" if name.endswith("base") else "large")


def test_lettucedetect_marks_the_words_behind_its_prompt(models):
    name = "lettucedect-base-modernbert-en-v1"
    judge = judge_of(models, name)
    assert isinstance(judge, GroundingJudge)
    item = GroundingItem(("born in rome.", "a painter."), "she was born in paris", "who is she?")
    bare = GroundingItem(item.statements, item.sentence)
    found = judge.ground([item, bare, GroundingItem((), "she was born")])
    model = transformers.AutoModelForTokenClassification.from_pretrained(models / name).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(models / name)
    for one, grounding in zip((item, bare), found, strict=False):
        prompt = marker_prompt(one.statements, one.context)
        ids = tokenizer(prompt, one.sentence)["input_ids"]
        own = tokenizer(one.sentence, add_special_tokens=False)["input_ids"]
        start = len(ids) - len(own) - 1
        with torch.no_grad():
            rows = model(input_ids=torch.tensor([ids])).logits[0].softmax(-1)[start:-1, 1]
        assert grounding.supported == pytest.approx(1 - rows.max().item(), abs=1e-4)
        assert len(grounding.words) == len(one.sentence.split())
        assert max(word.missing for word in grounding.words) == pytest.approx(
            rows.max().item(), abs=1e-4
        )
        assert grounding.contradicted == 0.0
    assert found[2].verdict is Verdict.UNSUPPORTED
    assert found[0] != found[1]


def test_the_prompts_are_those_of_ragtruth():
    assert marker_prompt(["alpha", "beta"], "What?") == (
        "Briefly answer the following question:\nWhat?\n"
        "Bear in mind that your response should be strictly based on the following 2 passages:\n"
        "passage 1: alpha\npassage 2: beta\n"
        "In case the passages do not contain the necessary information to answer the question, "
        'please reply with: "Unable to answer based on given passages."\noutput:'
    )
    assert marker_prompt(["only"], "") == "Summarize the following text:\npassage 1: only\noutput:"


SAME_FORM = {"lettucedect-large-modernbert-en-v1", "lettucedect-v2-mmbert-base"}
"""As ``lettucedect-base-modernbert-en-v1``."""


@pytest.mark.parametrize("name", sorted(set(KNOWN) - SAME_FORM))
def test_the_chunk_that_supports_most_counts(models, name):
    """Evidence of any length is read to its end, and more of it never supports less."""
    judge = judge_of(models, name)
    whole, *parts = judge.judge(
        [LONG, *(Pair(chunk, LONG.hypothesis) for chunk in chunks_of(name))]
    )
    if not name.startswith(("lettucedect", "hallucination")):  # which read all of it at once
        assert len(parts) > 1
    if not name.startswith("lettucedect"):
        assert whole.entailment == pytest.approx(max(p.entailment for p in parts), abs=1e-4)
    assert 0.0 < whole.entailment < 1.0


def chunks_of(name: str) -> list[str]:
    if name.startswith("AlignScore"):
        return even_chunks(LONG.premise, 350)
    sizes = {"FactCG": (550, 1), "MiniCheck-Flan-T5": (500, 0), "MiniCheck": (400, 1)}
    size, end = next((sizes[family] for family in sizes if name.startswith(family)), (None, 0))
    if size is None:
        return [LONG.premise]
    return sentence_chunks(
        LONG.premise, size, lambda items: [len(text.split()) + end for text in items]
    )


def test_marks_of_the_tokenizer_in_a_text_are_no_marks(models):
    """Evidence cannot end itself and write the claim that follows."""
    judge = judge_of(models, "MiniCheck-RoBERTa-Large")
    plain, hostile = judge.judge(
        [Pair("born in rome", "in paris"), Pair("born [SEP] in rome", "in [SEP] paris")]
    )
    assert hostile.entailment == pytest.approx(plain.entailment, abs=1e-5)


def test_odd_texts_are_read(models):
    pairs = [Pair("", ""), Pair("\ud800", "{claim}"), Pair("rome", "in paris " * 600)]
    for name in ("MiniCheck-RoBERTa-Large", "FactCG-DeBERTa-v3-Large", "AlignScore"):
        assert len(judge_of(models, name).judge(pairs)) == len(pairs)
    # A long claim is never cut for its document, which is read in halves.
    claim = "she was born in rome " * 60
    short, other = judge_of(models, "MiniCheck-RoBERTa-Large").judge(
        [Pair(LONG.premise, claim), Pair(LONG.premise, claim + "paris")]
    )
    assert short.entailment != other.entailment


def test_probabilities_take_a_temperature_of_ones_own(models):
    name = f"hf:{models / 'MiniCheck-RoBERTa-Large'}"
    [sharp] = create_nli(name, device="cpu").judge(PAIRS[:1])
    [soft] = create_nli(name, device="cpu", temperature=10.0).judge(PAIRS[:1])
    assert abs(soft.entailment - 0.5) < abs(sharp.entailment - 0.5)


@pytest.mark.parametrize(("quota", "threads"), [(1, 1), (64, 2)])
def test_torch_has_no_more_threads_than_a_container_may_use(models, monkeypatch, quota, threads):
    monkeypatch.setattr("judges.pretrained.usable_cpus", lambda: quota)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        judge_of(models, "MiniCheck-RoBERTa-Large").judge(PAIRS)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_a_name_is_known_in_any_capitals_and_by_its_folder():
    for name in ("lytang/minicheck-roberta-large", "/srv/models/MiniCheck-RoBERTa-Large/"):
        assert not open_hf(name).traits.tells_contradiction
    assert open_hf("somebody/else").traits.tells_contradiction


CLASSIFIER = "BertForSequenceClassification"
UNNAMED = {str(number): f"LABEL_{number}" for number in range(3)}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"architectures": ["BertModel"]}, "no head that classifies"),
        ({}, "no architecture named"),
        ({"architectures": ["BertModel"]}, "did you mean 'MiniCheck-RoBERTa-Large'"),
        ({"architectures": ["LlamaForCausalLM"]}, "write chat:MODEL"),
        ({"architectures": ["T5ForConditionalGeneration"]}, "t5-true:MODEL"),
        ({"architectures": ["BertForTokenClassification"]}, "LettuceDetect"),
        ({"architectures": [CLASSIFIER], "auto_map": {"AutoModel": "x.X"}}, "code of its own"),
        ({"architectures": [CLASSIFIER], "id2label": UNNAMED}, "does not name its labels"),
        ({"architectures": [CLASSIFIER], "id2label": {"0": "LABEL_0"}}, "one number"),
    ],
)
def test_a_model_that_cannot_be_read_is_refused(tmp_path, config, message):
    folder = tmp_path / "MiniCheck-Roberta-Larg"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(JudgeError, match=message):
        create_nli(f"hf:{folder}", device="cpu").warm_up()


# --- Batches on PyTorch -------------------------------------------------------------------------

SHORT = [Pair(f"born in {word} " * n, f"the {word}") for n, word in enumerate(WORDS[:12], 1)]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An NLI classifier of 64 positions that reads segment ids."""
    folder = tmp_path_factory.mktemp("classifier")
    size = tokenizer_of(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=size,
        max_position_embeddings=64,
        id2label={0: "CONTRADICTION", 1: "entailment", 2: "Neutral"},
        **small(),
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def loaded(classifier: Path, **options: object) -> HFJudge:
    judge = HFJudge(str(classifier), device="cpu", **options)
    judge.warm_up()
    return judge


def test_batches_give_what_the_model_gives_pair_by_pair(classifier):
    scores = loaded(classifier, token_budget=128).judge([*SHORT, SHORT[0]])
    assert scores[0] == scores[-1]
    model, tokenizer = auto("BertForSequenceClassification", classifier)
    for pair, score in zip(SHORT, scores, strict=False):
        ids = tokenizer(*pair)["input_ids"]
        types = (torch.arange(len(ids)) > ids.index(3)).long()[None]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids]), token_type_ids=types).logits
        found = [score.contradiction, score.entailment, score.neutral]
        assert found == pytest.approx(logits.softmax(-1)[0].tolist(), abs=1e-4)


def test_long_premises_are_windowed_and_odd_text_is_read(classifier):
    pairs = [Pair("rome " * 500, "paris"), Pair("", ""), Pair("\ud800", "rome")]
    assert len(loaded(classifier).judge(pairs)) == 3
    assert loaded(classifier).judge([]) == []


def test_lack_of_memory_halves_the_batch(classifier, monkeypatch):
    judge = loaded(classifier)
    expected = judge.judge(SHORT)
    runner = judge._runner
    assert runner is not None
    compute = runner.outputs

    def small_device(model: object, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        if len(inputs["input_ids"]) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return compute(model, inputs)

    monkeypatch.setattr(runner, "outputs", small_device)
    for found, wanted in zip(judge.judge(SHORT), expected, strict=True):
        assert found.entailment == pytest.approx(wanted.entailment, abs=1e-5)


def test_a_model_that_gives_nan_is_an_error(classifier):
    judge = loaded(classifier)
    assert judge._runner is not None
    with torch.no_grad():
        judge._runner.model.classifier.bias.fill_(float("nan"))
    with pytest.raises(JudgeError, match="not finite"):
        judge.judge(SHORT)


def test_true_compares_the_likelihood_of_one_and_zero(models):
    folder = models / "MiniCheck-Flan-T5-Large"
    judge = create_nli(f"t5-true:{folder}", device="cpu", token_budget=200)
    for pair, score in zip(SHORT, judge.judge(SHORT), strict=True):
        expected = says_one(folder, f"premise: {pair.premise} hypothesis: {pair.hypothesis}")
        assert score.entailment == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("labels", "columns"),
    [
        ("entailment neutral contradiction", "entailment neutral contradiction"),
        ("not_entailment entailment", "neither entailment"),
        ("REFUTES|NOT ENOUGH INFO|SUPPORTS", "contradiction neutral entailment"),
    ],
)
def test_labels_are_found_in_any_order(labels, columns):
    named = labels.split("|") if "|" in labels else labels.split()
    expected = {name: column for column, name in enumerate(columns.split())}
    assert label_columns(dict(enumerate(named))) == expected


def test_labels_of_another_task_are_refused():
    with pytest.raises(JudgeError, match="not those of an NLI model"):
        label_columns({0: "good", 1: "bad"})
