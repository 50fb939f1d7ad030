from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.core.types import Mention
from kg.mentions import (
    capitalised_spans,
    fold,
    join_mentions,
    listed_names,
    load_tagger,
    name_forms,
    tagged_mentions,
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Who taught Leonardo da Vinci's pupil?", "Leonardo da Vinci"),
        ("Did Hasan al-Askari meet King Henry VIII of England?",
         "Hasan al-Askari | King Henry VIII of England"),
        ("How did Cao Cao, Liu Bei and J. R. R. Tolkien meet? In Rome.",
         "Cao Cao | Liu Bei | J. R. R. Tolkien | Rome"),
    ],
)  # fmt: skip
def test_capitalised_spans_keep_particles_and_end_at_signs(text: str, names: str) -> None:
    assert " | ".join(span.text for span in capitalised_spans(text)) == names


def test_lists_share_the_end_of_the_last_name() -> None:
    text = "What did Ludwig and Richard von Mises write?"
    names = [name.full for name in listed_names(text, capitalised_spans(text))]
    assert names == ["Ludwig Mises", "Ludwig von Mises"]


def test_name_forms_drop_titles_and_diacritics() -> None:
    assert name_forms("the Emperor Claudius")[-1] == "Claudius"
    assert "Eamon de Valera" in name_forms("Éamon de Valera")


def test_the_tagger_is_trimmed_and_lends_its_types() -> None:
    text = "Was Anne Boleyn's daughter queen in 1558?"
    tagged = tagged_mentions(load_tagger()(text))
    spotted = [Mention(text="Anne Boleyn", start=4, end=15)]
    joined = join_mentions(text, spotted=spotted, tagged=tagged, spans=capitalised_spans(text))
    assert [(m.text, m.ner) for m in joined] == [("Anne Boleyn", "PERSON")]


def test_label_index_wins_over_a_longer_tag() -> None:
    text = "Pharaohs Intef II"
    joined = join_mentions(
        text,
        spotted=[Mention(text="Intef II", start=9, end=17)],
        tagged=[Mention(text=text, start=0, end=17, ner="LOC")],
        spans=capitalised_spans(text),
    )
    assert [m.text for m in joined] == ["Intef II"]


@given(st.text(alphabet=st.characters(), max_size=200))
def test_spans_are_disjoint_stretches_of_any_text(text: str) -> None:
    end = 0
    for span in capitalised_spans(text):
        assert end <= span.start < span.end
        assert text[span.start : span.end] == span.text
        end = span.end
    assert fold(fold(text)) == fold(text)
