"""Facts of persons become RDF: names link only where one person is possible."""

from training.persons import Fact, Person, build


def person(qid: str, name: str, **facts: str) -> Person:
    rows = tuple(Fact(pid=pid, property=pid, value=value) for pid, value in facts.items())
    return Person(qid=qid, name=name, facts=rows)


def built(*people: Person) -> set[tuple[str, str, str]]:
    """Facts as (subject, property, value), nodes by their short ids."""
    return {
        tuple(getattr(term, "value", "").rsplit("/", 1)[-1] for term in triple)  # type: ignore[misc]
        for triple in build(people, {})
        if "/direct/" in str(triple.predicate)
    }


def test_a_name_links_only_where_one_person_is_possible() -> None:
    facts = built(
        person("Q1", "Ann", P569="1900-01-01", P22="Bob", P40="Cid", P26="Dan", P106="Bob"),
        person("Q2", "Bob", P569="1870-01-01"),
        person("Q3", "Cid", P569="1800-01-01"),  # too old to be a child of Ann
        person("Q4", "Dan", P26="Ann"),
        person("Q5", "Dan"),  # a namesake, not married to Ann
    )
    assert ("Q1", "P22", "Q2") in facts
    assert ("Q1", "P40", "Cid") in facts
    assert ("Q1", "P26", "Q4") in facts
    assert ("Q1", "P106", "Bob") in facts  # an occupation is never a person
