"""The English pipeline, and what is not English."""

from __future__ import annotations

import gc
import multiprocessing
import os
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from guardrail import cli
from guardrail.core.text import tagging
from guardrail.core.text.tagging import load_english, run_pipeline
from guardrail.core.text.words import in_english
from tests.clock import PATIENCE_S


def test_threads_that_load_at_once_get_one_pipeline() -> None:
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(lambda _: load_english("lemmatizer", "parser"), range(8)))
    assert len({id(nlp) for nlp in loaded}) == 1
    assert loaded[0].pipe_names == ["tok2vec", "tagger", "attribute_ruler", "ner"]


@pytest.mark.parametrize("stated", [None, "4"])
def test_the_program_runs_numpy_on_one_thread_by_default(
    stated: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr(cli, "app", lambda: seen.append(os.environ["OPENBLAS_NUM_THREADS"]))
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if stated is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", stated)
    cli.main()
    assert seen == [stated or "1"]
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_forked_while_another_thread_parses_can_parse() -> None:
    nlp = load_english("lemmatizer", "parser")
    with tagging._loading, tagging._running:
        child = multiprocessing.get_context("fork").Process(
            target=lambda: run_pipeline(nlp, ["She was born in Rome."])
        )
        child.start()
        child.join(PATIENCE_S)
    hung = child.is_alive()
    child.kill()
    assert not hung
    assert child.exitcode == 0


def test_a_pipeline_that_has_read_many_new_words_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = ("lemmatizer", "parser", "ner")
    old = load_english(*parts)
    monkeypatch.setattr(tagging, "MOST_STRINGS", len(old.vocab.strings) + 20)
    assert load_english(*parts) is old
    (doc,) = run_pipeline(old, [" ".join(f"zq{number}x" for number in range(100))])
    new = load_english(*parts)
    assert new is not old
    assert load_english(*parts) is new
    assert doc[99].text == "zq99x"
    gone = weakref.ref(old)
    del old, doc
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    "text",
    [
        "You're welcome! Let me know if you need anything else.",
        "- Born: 10 December 1815\n- Father: Lord Byron\n- Mother: Anne Isabella Byron",
        "| Field | Value |\n| Born | 10 December 1815 |\n| Father | Lord Byron | Mother | Anne |",
        "Yes, ships free within two working days, usually arrives sooner, no extra cost.",
        "red, green, blue, black, white, orange, purple, brown, yellow, pink, grey, cyan",
        "Add flour, eggs, milk, sugar, butter; mix well, bake twenty minutes, serve warm.",
        "Try restarting, clearing cookies, updating drivers, reinstalling, then call support.",
        "Die casting makes metal parts; see Van der Berg and De la Cruz on cost per piece.",
        "She was a mathematician, known for computing machines, analytical engines and poetry.",
    ],
)
def test_english_and_lists_of_names_pass(text: str) -> None:
    assert in_english(text)


PLAIN = """
Free returns within 30 days.
Open daily 9 to 5.
Berlin, Hamburg, Munich.
Add salt, stir, serve.
Prices start at 20 euros.
Pasta al dente with pesto.
Los Angeles, San Diego, El Paso.
El Niño causes floods.
Café au lait costs 3 euros.
Die hard.
Me too.
Data not found.
Reset password via email.
La La Land won six Oscars.
Leonardo da Vinci painted it.
Ludwig van Beethoven wrote nine symphonies.
Charles de Gaulle, Simone de Beauvoir and Guy de Maupassant.
The band played La Vida es un Carnaval by Celia Cruz.
Red, green, blue.
Height 1.80 m, weight 75 kg.
Das Boot is a film.
Les Misérables opened in 1985.
Bon appetit!
Champs-Élysées, Arc de Triomphe, Tour de France.
Une Femme Est Une Femme is by Godard.
Robert De Niro starred in Casino.
en route via Oslo
vis-à-vis
de facto leader de jure king
Die, mould, der.
Pad Thai, tom yum, som tam.
Marquis de la Fayette
sushi, ramen, udon
Jeanne d'Arc died in Rouen.
tour de force by van der Rohe
van der Waals forces
"""


@pytest.mark.parametrize("text", PLAIN.strip().splitlines())
def test_short_plain_english_is_never_called_anything_else(text: str) -> None:
    assert in_english(text)
    assert in_english(f"What is it? {text}")


@pytest.mark.parametrize(
    "text",
    [
        "Das ist ein guter Hund und er schläft.",
        "Le prix est de 20 euros et la livraison est gratuite.",
        "Geboren wurde sie in London und sie starb in Marylebone, wo sie auch begraben liegt.",
        "Да, доставка бесплатна, если вы заказали больше двух велосипедов.",
        "保修期为五年，但电池的保修期只有两年，请在冰点以上的温度下充电。",
        "El precio es de dos mil euros y la garantía del cuadro es de cinco años.",
        "Ada Lovelace est née à Londres et elle est morte à Marylebone en 1852.",
    ],
)
def test_other_languages_are_detected(text: str) -> None:
    assert not in_english(text)
