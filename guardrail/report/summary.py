"""A score log in numbers, computed by SQLite."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from guardrail.core.types import Category
from guardrail.log.entries import Feedback, Record, RecordFilter, from_json
from guardrail.log.records import SQLiteLog

NO_CLAIM = "no claim"


@dataclass(frozen=True)
class TrendPoint:
    """Mean of a score over the records of a time interval."""

    start: datetime
    mean: float
    count: int


@dataclass(frozen=True)
class ScoreSummary:
    """Distribution and trend of one score.

    Attributes:
        reason: The most frequent reason for a missing value.
        low: Lower end of the first bin.
        high: Upper end of the last.
        bins: Number of values in equal bins.
        quantiles: 10th, 50th and 90th percentile.
    """

    name: str
    count: int
    missing: int
    reason: str | None
    mean: float = 0.0
    low: float = 0.0
    high: float = 1.0
    bins: tuple[int, ...] = ()
    quantiles: tuple[float, ...] = ()
    trend: tuple[TrendPoint, ...] = ()


@dataclass(frozen=True)
class StageSummary:
    """Latency of one stage, milliseconds."""

    name: str
    count: int
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True)
class ProblemCount:
    """How often a part failed, and its latest message."""

    part: str
    count: int
    message: str


@dataclass(frozen=True)
class Phrase:
    """A phrase without support: what a graph may lack.

    Attributes:
        entity: Label of the linked entity that its sentence names, else of the answer's first.
        sentence: A sentence with it.
        count: Answers with it.
        record_id: The newest record with it.
    """

    entity: str | None
    entity_id: str | None
    text: str
    sentence: str
    count: int
    record_id: str


@dataclass(frozen=True)
class Summary:
    """The contents of a report.

    ``categories`` counts sentences, ``no claim`` included, and ``intents`` the same by the
    question's intent. ``unsupported`` is the number of phrases without support, ``phrases`` the
    most frequent ones. ``failing`` are the records with the lowest overall score, lowest first,
    without those that passed with 1.0; ``others`` the newest of the rest, newest first.
    """

    records: int
    first: datetime | None
    last: datetime | None
    actions: Mapping[str, int]
    categories: Mapping[str, int]
    intents: Mapping[str, Mapping[str, int]]
    scores: list[ScoreSummary]
    stages: list[StageSummary]
    phrases: list[Phrase]
    unsupported: int
    problems: list[ProblemCount]
    versions: list[str]
    thumbs_up: int
    thumbs_down: int
    corrections: int
    failing: list[Record]
    others: list[Record]
    feedback: Mapping[str, list[Feedback]]


def summarise(
    log: SQLiteLog,
    where: RecordFilter | None = None,
    *,
    latest: int | None = None,
    shown: int = 200,
) -> Summary:
    """Summarise the records that meet the conditions, without candidates that lost.

    Args:
        log: The score log.
        where: Which records.
        latest: Only the newest n; None for all.
        shown: Number of records to return whole, at most three quarters of them failing ones.
    """
    where = (where or RecordFilter()).model_copy(update={"returned": True})
    with log.reading() as db:
        # The escape of a lone surrogate in JSON becomes bytes that are not UTF-8.
        db.text_factory = lambda data: data.decode("utf-8", "replace")
        db.isolation_level = None
        db.execute("BEGIN")  # one snapshot for all queries
        _choose(db, where, latest)
        records, first, last = db.execute(
            "SELECT count(*), min(created), max(created) FROM chosen"
        ).fetchone()
        categories = dict.fromkeys([*(category.value for category in Category), NO_CLAIM], 0)
        intents: dict[str, dict[str, int]] = defaultdict(dict)
        for intent, kind, count in db.execute(
            "SELECT intent, coalesce(json_extract(sentence, '$.category'), ?), count(*)"
            " FROM sentences GROUP BY 1, 2",
            [NO_CLAIM],
        ):
            categories[kind] += count
            if intent:
                intents[intent][kind] = count
        up, down, corrections = db.execute(
            "SELECT sum(thumb > 0), sum(thumb < 0), sum(coalesce(correction, '') != '')"
            " FROM feedback JOIN chosen ON record_id = id"
        ).fetchone()
        worst = db.execute(
            "SELECT payload FROM answers WHERE overall < 1 OR (action != 'pass' AND overall = 1)"
            " ORDER BY overall, number LIMIT ?",
            [3 * shown // 4],
        )
        failing = [from_json(text) for (text,) in worst]
        ids = {record.id for record in failing}
        latest_first = "SELECT payload FROM answers ORDER BY at DESC, number DESC LIMIT ?"
        newest = (from_json(text) for (text,) in db.execute(latest_first, [shown]))
        others = [record for record in newest if record.id not in ids][: shown - len(failing)]
        ids.update(record.id for record in others)
        feedback: dict[str, list[Feedback]] = defaultdict(list)
        for item in log.feedback():
            if item.record_id in ids:
                feedback[item.record_id].append(item)
        actions = db.execute(
            "SELECT coalesce('would ' || json_extract(payload, '$.answer.would'), action), count(*)"
            " FROM answers GROUP BY 1 ORDER BY 2 DESC, 1"
        )
        problems = db.execute(
            "SELECT json_extract(value, '$.part'), count(*), json_extract(value, '$.message'),"
            " max(number) FROM answers, json_each(payload, '$.answer.errors')"
            " GROUP BY 1 ORDER BY 2 DESC, 1"
        )
        versions = db.execute(
            "SELECT key || ': ' || value, max(number)"
            " FROM answers, json_each(payload, '$.answer.versions') GROUP BY 1 ORDER BY 2, 1"
        )
        return Summary(
            records=records,
            first=first and datetime.fromisoformat(first),
            last=last and datetime.fromisoformat(last),
            actions=dict(actions),
            categories=categories,
            intents=dict(sorted(intents.items())),
            scores=_scores(db),
            stages=[StageSummary(*row) for row in _quantiles(db, "stages", 0.5, 0.95, 0.99)],
            phrases=_phrases(db),
            unsupported=db.execute("SELECT count(*) FROM phrases").fetchone()[0],
            problems=[ProblemCount(*row[:3]) for row in problems],
            versions=[name for name, _ in versions],
            thumbs_up=up or 0,
            thumbs_down=down or 0,
            corrections=corrections or 0,
            failing=failing,
            others=others,
            feedback=feedback,
        )


def _choose(db: sqlite3.Connection, where: RecordFilter, latest: int | None) -> None:
    """Make tables of the records and of their parts, which the other queries read."""
    tests, values = where.sql()
    db.execute(
        f"""CREATE TEMP TABLE chosen AS SELECT rowid AS number, id, action, overall, created,
                CAST(strftime('%s', created) AS REAL) AS at,
                json_extract(payload, '$.tags.intent') AS intent
            FROM responses WHERE {tests} ORDER BY created DESC, rowid DESC LIMIT ?""",
        [*values, -1 if latest is None else latest],
    )
    for statement in (
        """CREATE TEMP VIEW answers AS SELECT chosen.*, payload
            FROM chosen JOIN responses ON responses.rowid = number""",
        """CREATE TEMP TABLE sentences AS
            SELECT number, answers.id AS record, intent, value AS sentence
                FROM answers, json_each(payload, '$.answer.sentences')
            UNION ALL SELECT number, answers.id, intent, value
                FROM answers, json_each(payload, '$.answer.removed')""",
        """CREATE TEMP TABLE scores AS
            SELECT 'overall' AS name, overall AS value, at,
                json_extract(payload, '$.answer.scorecard.overall.reason') AS reason, 0 AS place
                FROM answers
            UNION ALL SELECT key, json_extract(value, '$.value'), at,
                json_extract(value, '$.reason'), 1
                FROM answers, json_each(payload, '$.answer.scorecard.scores')""",
        """CREATE TEMP TABLE stages AS SELECT key AS name, value, stage.id AS place
            FROM answers, json_each(payload, '$.answer.timings_ms') AS stage""",
        """CREATE TEMP VIEW phrases AS SELECT number, record,
                json_extract(sentence, '$.text') AS sentence, json_extract(value, '$.text') AS text
            FROM sentences, json_each(sentence, '$.spans')
            WHERE json_extract(value, '$.kind') = 'na'
                AND json_extract(sentence, '$.category') IS NOT NULL""",
    ):
        db.execute(statement)


def _phrases(db: sqlite3.Connection) -> list[Phrase]:
    """Unsupported phrases by the entity that their sentence names, else the first linked one."""
    rows = db.execute(
        """SELECT json_extract(entity, '$.entity.label') AS label,
                json_extract(entity, '$.entity.id') AS id, text, sentence,
                count(DISTINCT number) AS count, record, max(number) AS newest
            FROM (SELECT phrases.*, coalesce(
                    (SELECT value FROM responses, json_each(payload, '$.answer.entities')
                        WHERE responses.rowid = number
                            AND (instr(sentence, json_extract(value, '$.mention.text'))
                                OR instr(sentence, json_extract(value, '$.entity.label'))) LIMIT 1),
                    (SELECT json_extract(payload, '$.answer.entities[0]') FROM responses
                        WHERE responses.rowid = number)) AS entity
                FROM phrases)
            GROUP BY label, text ORDER BY count DESC, newest DESC LIMIT 40"""
    )
    return [Phrase(*row[:6]) for row in rows]


def _quantiles(
    db: sqlite3.Connection, table: str, *shares: float
) -> list[tuple[str, int, float, float, float]]:
    """Name, number of values, and three quantiles of the values by name."""
    # The value at a share of the ranks, or the mean of the two around it
    values = [f"avg(value) FILTER (WHERE abs(rank - {x} * (count - 1)) < 1)" for x in shares]
    return db.execute(
        f"""SELECT name, count, {", ".join(values)} FROM (
            SELECT name, value, place, count(*) OVER (PARTITION BY name) AS count,
                row_number() OVER (PARTITION BY name ORDER BY value) - 1 AS rank
            FROM {table} WHERE value IS NOT NULL)
        GROUP BY name ORDER BY name = 'total', min(place), name"""
    ).fetchall()


def _scores(db: sqlite3.Connection) -> list[ScoreSummary]:
    quantiles = {name: values for name, _, *values in _quantiles(db, "scores", 0.1, 0.5, 0.9)}
    reasons = dict(
        db.execute(
            "SELECT name, reason FROM scores WHERE value IS NULL AND reason IS NOT NULL"
            " GROUP BY name, reason ORDER BY count(*)"
        )
    )
    first, last = db.execute("SELECT min(at), max(at) FROM chosen").fetchone()
    # At most 60 points of a trend, a minute apart at least
    width = max(60.0, ((last or 0.0) - (first or 0.0)) / 59)
    trends: dict[str, list[TrendPoint]] = defaultdict(list)
    for name, start, mean, count in db.execute(
        "SELECT name, min(at), avg(value), count(*) FROM scores WHERE value IS NOT NULL"
        " GROUP BY name, CAST((at - ?) / ? AS INT) ORDER BY 2",
        (first, width),
    ):
        trends[name].append(TrendPoint(datetime.fromtimestamp(start, UTC), mean, count))
    found = []
    for name, count, missing, mean, least, most in db.execute(
        "SELECT name, count(value), count(*) - count(value), avg(value), min(value), max(value)"
        " FROM scores GROUP BY name ORDER BY min(place), name"
    ).fetchall():
        score = ScoreSummary(name, count, missing, reasons.get(name))
        if count:
            number = 20  # of bins
            low, high = (0.0, 1.0) if least >= 0 and most <= 1 else (least, most)
            query = (
                "SELECT min(?, CAST((value - ?) / ? AS INT)), count(*) FROM scores"
                " WHERE name = ? AND value IS NOT NULL GROUP BY 1"
            )
            bins = dict(db.execute(query, (number - 1, low, (high - low) / number or 1.0, name)))
            score = replace(
                score,
                mean=mean,
                low=low,
                high=high,
                bins=tuple(bins.get(place, 0) for place in range(number)),
                quantiles=tuple(quantiles[name]),
                trend=tuple(trends[name]),
            )
        found.append(score)
    return found
