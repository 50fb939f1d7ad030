"""The table of presets: measured by the engine's own pass, written between a page's comments."""

from benchmarks.verdicts.cases import Case
from benchmarks.verdicts.judging import judge_cases
from benchmarks.verdicts.measure import summed
from benchmarks.verdicts.presets import preset_table
from guardrail.core.types import Grounding, Passage, Strictness, Verdict
from guardrail.verdict.grounder import Grounder
from tests.guardrail.scripted import Scripted

EVIDENCE = (Passage("The mill has three floors and a wheel."),)
TEXTS = {
    "The mill has three floors.": (0.9, Verdict.SUPPORTED),
    "It is a mill with a wheel.": (0.6, Verdict.SUPPORTED),
    "The wheel turns all year.": (0.4, Verdict.UNSUPPORTED),
    "The mill belongs to a widow.": (0.1, Verdict.UNSUPPORTED),
}
CASES = [Case("mill", EVIDENCE, text, label) for text, (_, label) in TEXTS.items()]


def test_the_rows_count_what_passes_at_each_preset() -> None:
    groundings = {
        text: Grounding(supported=p, unsupported=1 - p, contradicted=0, no_claim=0)
        for text, (p, _) in TEXTS.items()
    }
    grounder = Grounder(Scripted(groundings))
    measured = {
        preset: [summed(CASES, judge_cases(grounder, CASES, preset.thresholds))]
        for preset in Strictness
    }
    assert preset_table(measured).splitlines()[2:] == [
        "| `lenient` | 0.33 | 0.70 | 0.75 | 100.0% | 50.0% | – | – | 0.0% | 0.0% |",
        "| `balanced` | 0.50 | 0.60 | 0.75 | 100.0% | 0.0% | – | – | 0.0% | 0.0% |",
        "| `strict` | 0.67 | 0.50 | 0.75 | 50.0% | 0.0% | – | – | 0.0% | 0.0% |",
    ]
