"""The answers of a batch under the guardrail: judged together, and each row fails alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import NamedTuple, TypeVar

from langchain_core.runnables import RunnableConfig

from chains.check_run import Asked, traced
from chains.evidence.base import Case
from chains.messages import output_text
from guardrail import CheckRequest, GuardedAnswer, Guardrail, Policy

__all__ = ["Row", "check_rows", "result_or_error"]

Result = TypeVar("Result")


class Row(NamedTuple):
    """An answer that is to be judged.

    Attributes:
        place: Its place in the batch.
        answer: A message or a text.
        case: What it is judged against.
        config: The config of its run, whose callbacks are told of the check.
    """

    place: int
    answer: object
    case: Case
    config: RunnableConfig


async def check_rows(
    guard: Guardrail, rows: Sequence[Row], policy: Policy
) -> list[GuardedAnswer | Exception]:
    """Check n answers, those of the same policy together.

    Args:
        guard: The guardrail.
        rows: The n answers.
        policy: For rows whose case names none.

    Returns:
        The n verdicts in the order of the rows; where there is none, the error of that row.
    """
    groups: list[tuple[Policy, list[int]]] = []
    for number, row in enumerate(rows):
        wanted = row.case.policy or policy
        group = next((places for known, places in groups if known == wanted), None)
        if group is None:
            groups.append((wanted, [number]))
        else:
            group.append(number)
    checked = await asyncio.gather(
        *(_checked(guard, [rows[place] for place in places], wanted) for wanted, places in groups)
    )
    by_number = {
        number: answer
        for (_, places), answers in zip(groups, checked, strict=True)
        for number, answer in zip(places, answers, strict=True)
    }
    return [by_number[number] for number in range(len(rows))]


async def result_or_error(result: Awaitable[Result]) -> Result | Exception:
    """Await a row's result; return the error in its place where there is one."""
    try:
        return await result
    except Exception as error:  # retrievers and callbacks are foreign code and may raise anything
        return error


async def _checked(
    guard: Guardrail, rows: Sequence[Row], policy: Policy
) -> list[GuardedAnswer | Exception]:
    requests = [
        CheckRequest(
            question=row.case.question,
            answer=output_text(row.answer),
            evidence=row.case.evidence,
        )
        for row in rows
    ]
    asked = [
        Asked(row.config, request.question, request.answer, request.evidence)
        for row, request in zip(rows, requests, strict=True)
    ]
    # A Runnable's answer cannot be asked for again.
    checks = guard.acheck_batch(requests, policy=policy.settled())
    answers = await result_or_error(traced(asked, checks))
    if not isinstance(answers, Exception):
        return [row.case.with_problems(answer) for row, answer in zip(rows, answers, strict=True)]
    if len(rows) == 1:
        return [answers]
    # A policy that says ``raise`` does so for all; which row failed is known from each alone.
    alone = await asyncio.gather(*(_checked(guard, [row], policy) for row in rows))
    return [answer for item in alone for answer in item]
