"""Windows and sentences side by side say what each says alone."""

import torch

from judges.onnx import SHIPPED
from training.model import EncoderConfig
from training.packing import batches, encode_groups, load_tokenizer
from training.reader import EvidenceReader
from training.rows import Row

TINY = EncoderConfig(hidden_size=24, layers=2, attention_heads=2, intermediate_size=32, dropout=0.0)
TABLE = ("Hut Silz, beds: 60.", "Hut Silz, season: all year.", "Hut Fenneck, beds: 24.")


def _row(sentence: str, nli: int, *, windows: tuple[int, ...] = (0, 0, 1)) -> Row:
    return Row(
        "", sentence, "own", nli, (0,), claim=0, statements=TABLE, windows=windows,
        context="How many beds?", span=(0, 4) if nli else (), cited=frozenset({2}),
    )  # fmt: skip


def _said(rows: list[Row]) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    model = EvidenceReader(TINY).eval()
    groups = encode_groups(load_tokenizer(SHIPPED / "tokenizer.json"), rows)
    (batch,) = batches(groups, tokens=10_000, sequence=4_000)
    with torch.no_grad():
        return model(batch.packed)


def test_a_sentence_s_result_depends_on_no_other():
    rows = [_row("Fenneck has 24 beds.", 0), _row("Silz sleeps fewer.", 2)]
    foreign = Row("A plain premise.", "A hypothesis.", "other", 1)
    together = _said([*rows, foreign])
    for place, row in enumerate(rows):
        alone = _said([row])
        assert torch.allclose(together["nli"][place], alone["nli"][0], atol=1e-5)
    words = torch.cat([_said([row])["words"] for row in rows])
    assert torch.allclose(together["words"], words, atol=1e-5)
    marks = torch.cat([_said([row])["statements"] for row in rows])
    assert torch.allclose(together["statements"], marks, atol=1e-5)


def test_evidence_decides():
    there, gone = _row("Fenneck has 24 beds.", 0), _row("Fenneck has 24 beds.", 0)
    gone = gone._replace(statements=TABLE[:2], windows=(0, 0), cited=frozenset())
    assert not torch.allclose(_said([there])["nli"], _said([gone])["nli"], atol=1e-5)


def test_windows_do_not_see_each_other():
    one = _said([_row("Fenneck has 24 beds.", 0, windows=(0, 0, 0))])
    two = _said([_row("Fenneck has 24 beds.", 0)])
    assert not torch.allclose(one["nli"], two["nli"], atol=1e-6)
    turned = _row("Fenneck has 24 beds.", 0)._replace(
        statements=(TABLE[2], *TABLE[:2]), windows=(1, 0, 0), cited=frozenset({0})
    )
    assert torch.allclose(_said([turned])["nli"], two["nli"], atol=1e-5)


def test_targets_stand_where_their_words_and_marks_are():
    groups = encode_groups(
        load_tokenizer(SHIPPED / "tokenizer.json"), [_row("Four beds.", 2), _row("24 beds.", 0)]
    )
    (batch,) = batches(groups, tokens=10_000)
    flat = batch.packed.ids.flatten()
    assert set(flat[batch.packed.marks].tolist()) == {1}  # the mark [unused0]
    assert batch.statements.tolist() == [0, 0, 2, 0, 0, 1]
    assert batch.words.tolist() == [2, 0, 0, 0, 0, 0]
    assert set(flat[batch.packed.first].tolist()) == {101}
