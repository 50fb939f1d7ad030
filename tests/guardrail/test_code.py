"""Code in answers: left as it is, while sentences between code fences are judged like others."""

import pytest

from guardrail import Guardrail
from guardrail.claims import is_code
from guardrail.text.sentences import code_blocks, split_sentences
from guardrail.types import Category

CODE = '''Here is a function:

```python
def area(radius: float) -> float:
    """Area of a circle."""
    if radius < 0:
        raise ValueError("negative radius")
    return math.pi * radius ** 2

print(area(2))  # 12.566
```
'''


def test_code_is_no_claim(guard: Guardrail) -> None:
    answer = guard.check(
        question="How large is a circle?", answer=CODE + "Ada Lovelace was born in London."
    )
    *code, last = answer.sentences
    assert {sentence.category for sentence in code} == {None}
    assert last.category is Category.SUPPORTIVE
    assert answer.marked.startswith(CODE)


def test_a_sentence_between_fences_is_judged(guard: Guardrail) -> None:
    answer = guard.check(
        question="Who was Ada Lovelace?", answer="```\nAda Lovelace was born in Paris.\n```"
    )
    (sentence,) = answer.sentences
    assert sentence.category is Category.CONTRADICTORY


@pytest.mark.parametrize(
    "stretch",
    ["print(area(2))", '{"name": "Ada Lovelace", "born": 1815}', "# sort it", "x = 1", ""],
)
def test_what_reads_like_code(stretch: str) -> None:
    assert is_code(stretch)


@pytest.mark.parametrize(
    "stretch", ["Ada was born in Paris in 1815.", "# the king of France, Louis, died here"]
)
def test_what_reads_like_prose(stretch: str) -> None:
    assert not is_code(stretch)


def test_blocks_lie_between_fences() -> None:
    text = "a\n```py\nb\n```\nc\n~~~\nd\n"
    assert [text[start:end] for start, end in code_blocks(text)] == ["b\n", "d\n"]
    assert [one.text for one in split_sentences(text)] == ["a", "b", "c", "d"]
