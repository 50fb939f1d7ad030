"""The question at the end of a conversation, made to stand on its own."""

import pytest

from chains.conversation import Turn, standalone_question


def talk(*texts: str) -> list[Turn]:
    """Alternating user and assistant turns, the user first."""
    return [Turn("user" if n % 2 == 0 else "assistant", text) for n, text in enumerate(texts)]


def test_a_question_that_names_what_it_asks_stands_alone():
    turns = talk("Who was Ada Lovelace?", "A mathematician.", "Where was Mary Shelley born?")
    assert standalone_question(turns) == "Where was Mary Shelley born?"


@pytest.mark.parametrize("follow_up", ["And his father?", "Where was she born?", "Why?"])
def test_a_follow_up_brings_what_it_leans_on(follow_up):
    turns = talk("Who was Mary Shelley?", "A writer.", follow_up)
    assert standalone_question(turns) == f"Who was Mary Shelley? A writer. {follow_up}"


def test_history_stops_at_a_turn_that_stands_alone():
    turns = talk("Tell me of Rome.", "A city.", "Who was Mary Shelley?", "A writer.", "Her mother?")
    assert "Rome" not in standalone_question(turns)


def test_the_budget_cuts_history_and_never_the_question():
    turns = talk("Who was Mary Shelley?", "word " * 500, "When did she die?")
    question = standalone_question(turns, max_words=20)
    assert question.endswith("When did she die?")
    assert len(question.split()) <= 20


def test_system_and_tool_turns_are_passed_over():
    turns = [Turn("system", "Be brief."), *talk("Why did he leave?"), Turn("tool", "{}")]
    assert standalone_question(turns) == "Why did he leave?"


def test_no_user_turn_is_no_question():
    assert standalone_question([Turn("system", "Be brief.")]) == ""
