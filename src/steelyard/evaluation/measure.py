"""The measures beside accuracy and exact match: rank correlation, first choice, regret, length, people, calibration.

All of them share one drawing of the included prompts. What needs a number for each response is left out for a model
that only compares pairs, and people stand beside it on the pairs that it was asked about; with a score missing, only
the distribution of rewards is told.
"""

from collections.abc import Callable, Sequence
from itertools import compress
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from steelyard.core.arrays import Floats, Integers
from steelyard.evaluation.columns import ScoreColumns
from steelyard.evaluation.measures.calibration import Margins, calibration_report
from steelyard.evaluation.measures.first_choice import (
    Choices,
    choices_of,
    last_known,
    outcomes_of,
    ratings_lost,
    rows_of,
)
from steelyard.evaluation.measures.human_ceiling import HeldOut, human_ceiling
from steelyard.evaluation.measures.length import MATCHED_RATIO, Outcomes, length_report
from steelyard.evaluation.measures.regret import Regret
from steelyard.evaluation.measures.rewards import Rewards, reward_report
from steelyard.evaluation.questions import PairValues, Questions
from steelyard.statistics.bootstrap import Blocks, draw_layout
from steelyard.statistics.intervals import CORRELATION, SHARE, Scale
from steelyard.statistics.prompt_means import mean_of, summarise


class Measurable(NamedTuple):
    """What is measured: the questions, the model's scores, and what it makes of the pairs.

    ``has_scores``: it has a number for each response, and not only verdicts on pairs. ``has_rewards``: these numbers
    are rewards, and not the ratings or choices of a model that was asked. ``matched_ratio``: see `Outcomes`.
    """

    questions: Questions
    scores: ScoreColumns
    values: PairValues
    has_scores: bool = True
    has_rewards: bool = True
    matched_ratio: float = MATCHED_RATIO


def measure(given: Measurable, *, num_resamples: int, seed: int) -> dict[str, Any]:
    """The part ``measures`` of a summary."""
    questions, columns = given.questions, given.questions.columns
    names = list(compress(questions.units, columns.included))
    blocks = draw_layout(questions.layout, names, num_resamples=num_resamples, seed=seed)
    found: dict[str, Any] = {}
    if given.has_rewards:
        found["rewards"] = reward_report(blocks, _rewards(given))
    if given.has_rewards and np.isnan(given.values.better + given.values.worse).any():
        return found
    if given.has_scores:
        found |= _choices_report(blocks, given, choices_of(columns, given.scores.score))
    found["length"] = length_report(blocks, _outcomes(given))
    if given.has_rewards:
        margins = Margins(_rows(given)[columns.prompt], given.values.better - given.values.worse)
        found["calibration"] = calibration_report(blocks, margins, seed=seed)
    ceiling = _ceiling(blocks, given)
    return found if ceiling is None else found | {"human_ceiling": ceiling}


def _rows(given: Measurable) -> Any:
    return rows_of(given.questions.columns.included)


def _choices_report(blocks: Blocks, given: Measurable, choices: Choices) -> dict[str, Any]:
    columns = given.questions.columns
    included = columns.included
    correlations = choices.correlations
    tau, constant = correlations.tau[included], (correlations.is_constant & correlations.has_order)[included]
    measured = summarise(
        blocks,
        {
            "kendall_tau": mean_of(tau, CORRELATION),
            "constant_as_zero": mean_of(np.where(constant, 0.0, tau), CORRELATION),
            **{name: mean_of(own[included], SHARE) for name, own in choices.first._asdict().items()},
        },
    )
    counts = {
        "num_constant": int(constant.sum()),
        "num_without_order": int((~correlations.has_order[included]).sum()),
    }
    return {
        "kendall_tau": measured.pop("kendall_tau") | {"constant_as_zero": measured.pop("constant_as_zero")} | counts,
        "top_1": measured,
        "regret": {
            "tiers": _curve(blocks, choices.tiers_lost, choices.budgets, included),
            "ratings": {
                dimension: _curve(blocks, lost, budgets, included)
                for dimension, (lost, budgets) in ratings_lost(columns, given.scores.score).items()
            },
        },
    }


def _curve(blocks: Blocks, lost: Regret, budgets: Sequence[int], included: Any) -> dict[str, Any]:
    """Regret at each N, and where all responses are to choose from, each beside that of a choice at random."""
    sides, scale = {"model": lost.model[included], "chance": lost.chance[included]}, Scale(0.0, lost.largest or 1.0)
    ratios = {
        f"{side} {place}": mean_of(own[:, place], scale) for side, own in sides.items() for place in range(len(budgets))
    }
    by_budget = summarise(blocks, ratios, with_groups=False)
    whole = summarise(blocks, {side: mean_of(last_known(own), scale) for side, own in sides.items()})
    curve = [
        {"budget": budget, **{side: by_budget[f"{side} {place}"] for side in sides}}
        for place, budget in enumerate(budgets)
    ]
    return {"curve": curve, "of_all": whole}


def _outcomes(given: Measurable) -> Outcomes:
    own = outcomes_of(given.questions.columns, given.values, given.matched_ratio)
    return own._replace(prompt=_rows(given)[own.prompt])


def _rewards(given: Measurable) -> Rewards:
    columns, scores = given.questions.columns, given.scores
    case_of = columns.case_of
    chosen = columns.included[case_of]
    place = np.cumsum(chosen) - 1
    reasons = {int(place[response]): reason for response, reason in scores.reasons.items() if chosen[response]}
    return Rewards(_rows(given)[case_of[chosen]], scores.score[chosen], reasons)


def _ceiling(blocks: Blocks, given: Measurable) -> dict[str, Any] | None:
    columns = given.questions.columns
    if not any(columns.included[index] for index in columns.judged):
        return None
    starts = columns.start[columns.included]
    outcome = _scored_pairs(given) if given.has_scores else _asked_pairs(given)

    def outcomes(held_out: HeldOut) -> Floats:
        start = starts[held_out.case]
        return outcome(start + held_out.better, start + held_out.worse)

    return human_ceiling(columns.judged_cases(columns.included), blocks, outcomes)


def _scored_pairs(given: Measurable) -> Callable[[Integers, Integers], Floats]:
    """Return what the scores make of pairs of responses of the whole bench; one without a score is wrong."""
    score = given.scores.score
    return lambda better, worse: np.nan_to_num(score[better] - score[worse], nan=-1.0)


def _asked_pairs(given: Measurable) -> Callable[[Integers, Integers], Floats]:
    """The same from verdicts: one that is missing is wrong, as in the headline; a pair never asked about is NaN."""
    columns = given.questions.columns
    said: dict[tuple[int, int], float] = {}
    differences = (given.values.better - given.values.worse).tolist()
    for better, worse, difference in zip(columns.better.tolist(), columns.worse.tolist(), differences, strict=True):
        has_verdict = not isnan(difference)
        said[better, worse] = difference if has_verdict else -1.0
        said[worse, better] = -difference if has_verdict else -1.0
    return lambda better, worse: np.array(
        [said.get(pair, np.nan) for pair in zip(better.tolist(), worse.tolist(), strict=True)], np.float64
    )
