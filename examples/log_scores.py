"""Log every answer's scores, then turn the log into a page.

    python examples/log_scores.py [FOLDER]

Writes ``scores.sqlite`` and ``report.html`` to FOLDER, the current one by default.
"""

import sys
from pathlib import Path

from guardrail import Guardrail, GuardrailConfig
from guardrail.log.records import Feedback, Record, SQLiteLog
from guardrail.report import report_html

ANSWERS = {
    "Who was Ada Lovelace?": "Ada Lovelace was born in London. She invented the telephone.",
    "Who was Mozart?": "Wolfgang Amadeus Mozart was a composer born in Salzburg in 1770.",
}


def without_questions(record: Record) -> Record | None:
    """Redaction: what users ask stays out of the log."""
    answer = record.answer.model_copy(update={"question": "[redacted]"})
    return record.model_copy(update={"answer": answer})


def main(folder: Path) -> None:
    """Check two answers, log them, note what a reader thought, and write the report."""
    log = SQLiteLog(folder / "scores.sqlite", redact=without_questions)
    with log, Guardrail(GuardrailConfig(judge="none"), log=log) as guard:
        for question, text in ANSWERS.items():
            answer = guard.check(question=question, answer=text)
            score = answer.scorecard.overall
            print(score.reason if score.value is None else f"{score.value:.2f}", answer.marked)
        newest = log.latest(1)[0]
        log.write_feedback(Feedback(record_id=newest.id, thumb=-1, correction="born in 1756"))
        page = folder / "report.html"
        page.write_text(report_html(log), encoding="utf-8")
    print(f"open {page}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
