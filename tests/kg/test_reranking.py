from __future__ import annotations

from guardrail.core.types import Entity, Subgraph, Triple
from kg.reranking import TextIndex, rerank


def node(id_: str, label: str, *facts: tuple[str, str], prominence: int = 1) -> Subgraph:
    return Subgraph(
        entity=Entity(id=id_, label=label, prominence=prominence),
        triples=tuple(Triple(subject=label, property=p, value=v, subject_id=id_) for p, v in facts),
    )


ACTRESS = node(
    "Q1", "Anne Hathaway", ("occupation", "actor"), ("place of birth", "Brooklyn"),
    ("notable works", "The Devil Wears Prada"), prominence=90,
)  # fmt: skip
WIFE = node(
    "Q2", "Anne Hathaway", ("spouse", "William Shakespeare"), ("place of birth", "Shottery"),
    ("sex or gender", "female"), prominence=10,
)  # fmt: skip


def order(question: str, *nodes: Subgraph, plain: bool = False) -> list[str]:
    known = {subgraph.entity.id: subgraph for subgraph in nodes}
    [ranked] = rerank(
        [[subgraph.entity for subgraph in nodes]], TextIndex(question), known, plain=plain
    )
    return [candidate.entity.id for candidate in ranked]


def test_the_papers_example_is_decided_by_neighbour_values() -> None:
    question = "When did Anne Hathaway marry William Shakespeare?"
    assert order(question, ACTRESS, WIFE, plain=True) == ["Q2", "Q1"]
    assert order(question, ACTRESS, WIFE) == ["Q2", "Q1"]


def test_the_decision_is_kept_with_its_counts() -> None:
    known = {"Q1": ACTRESS, "Q2": WIFE}
    question = TextIndex("Was Anne Hathaway of Shottery married to william shakespeare?")
    [[best, other]] = rerank([[ACTRESS.entity, WIFE.entity]], question, known)
    assert best.matches == ("William Shakespeare", "Shottery")
    assert other.matches == ()
    assert best.score > other.score


def test_ties_go_to_the_prominent_then_to_the_smaller_id() -> None:
    assert order("Who is Anne Hathaway?", WIFE, ACTRESS, plain=True) == ["Q1", "Q2"]
    twin = node("Q0", "Anne Hathaway", prominence=90)
    assert order("Who is Anne Hathaway?", ACTRESS, twin, plain=True) == ["Q0", "Q1"]


def test_a_rare_value_outweighs_common_ones() -> None:
    crowd = [
        node(f"Q{n}", "John Green", ("occupation", "writer"), ("country", "Canada"), prominence=9)
        for n in range(10, 15)
    ]
    rare = node("Q9", "John Green", ("field", "astronomy"))
    question = "What did John Green, a writer in Canada, give to astronomy?"
    assert order(question, *crowd, rare)[0] == "Q9"
    assert order(question, *crowd, rare, plain=True)[0] == "Q10"


def test_names_that_the_mention_itself_holds_count_once() -> None:
    novelist = node("Q1", "Mary Shelley", ("given name", "Mary"), ("surname", "Godwin"))
    bearer = node("Q2", "Mary Shelley", ("given name", "Mary"), ("surname", "Shelley"))
    other = node("Q3", "Mary Shelley", ("given name", "Ruth"), ("surname", "Adams"))
    assert order("Who was Mary Shelley?", other, bearer, novelist) == ["Q1", "Q2", "Q3"]


def test_links_between_mentions_decide() -> None:
    father = Entity(id="Q5", label="Bob Brown")
    one, two = (Entity(id=id_, label="Ann Brown") for id_ in ("Q6", "Q7"))
    link = Triple(
        subject="Ann Brown", property="parent", value="B. Brown", subject_id="Q7", value_id="Q5"
    )
    ranked = rerank(
        [[father], [one, two]], TextIndex("Was Ann Brown close to Bob Brown?"), {}, [link]
    )
    assert ranked[1][0].entity.id == "Q7"


def test_values_are_found_as_words_in_any_case_and_accent() -> None:
    index = TextIndex("She painted in CÓRDOBA, not in Romeland.")
    assert index.holds(["cordoba"])
    assert not index.holds(["rome"])
    assert not index.holds([])
