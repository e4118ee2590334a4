"""The human ceiling: agreement of each annotator with the ranking of all others, and of the model on the same pairs.

Leave-one-out agreement of people is a reference point for a model's accuracy, not an upper limit. An annotator's
verdict on a pair that the others' ranking orders is right, wrong or a tie. The model's two scores on that pair are
judged by the same ranking.
"""

from collections.abc import Callable, Iterator
from math import isnan
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.numerics import Floats, Integers
from steelyard.core.types import Record
from steelyard.evaluation.measure import (
    GroupedMeans,
    Measure,
    MeasureRow,
    ResampledBench,
    ScoredBench,
    grouped_means,
    means_row,
)
from steelyard.evaluation.tables import word
from steelyard.ranking.conflicts import compare_with_tiers
from steelyard.ranking.judge_quality import tiers_of_others
from steelyard.ranking.judgment_table import (
    NONE,
    TIE,
    Aggregate,
    JudgmentTable,
    Only,
    edges_of,
    judgment_table,
)
from steelyard.ranking.tiers import tiers_of
from steelyard.statistics.bootstrap import Blocks
from steelyard.statistics.intervals import SHARE, needs_prompts
from steelyard.statistics.prompt_means import Ratio

TEXT = {
    "people_resolved": {"en": "Annotators vs. the others' ranking", "zh": "单个标注员与其余标注员排序的一致率"},
    "model_resolved": {"en": "Model on the same pairs", "zh": "模型在相同偏好对上的准确率"},
    "people_majority": {"en": "Annotators vs. the others' majority", "zh": "单个标注员与其余标注员多数判断的一致率"},
    "model_majority": {"en": "Model on the same pairs (majority)", "zh": "模型在相同偏好对上的准确率（多数判断）"},
    "define_people_resolved": {
        "en": "Agreement of each annotator's verdicts with the ranking of all others, on pairs that it orders: "
        "a reference point for a model's accuracy, not an upper limit. Prompts that contradictions leave without an "
        "order are not in it, so that it is too high where many are.",
        "zh": "每位标注员的判断与其余标注员所成排序的一致率，只计该排序分出先后的偏好对。它是模型准确率的参照，不是上"
        "限。因标注员相互矛盾而没有排序的提示词不计在内，此类提示词多时数值偏高。",
    },
}
_FEWEST_PROMPTS_PER_CATEGORY = 6
"""With fewer, the interval of the mean over categories is too short: with two it covers 77% (docs/measures.md)."""


class PeopleAndModel(Record, frozen=True, kw_only=True):
    """Agreement of annotators with the others' rankings, of the model on the same pairs, and the model's minus theirs.

    ``num_left_out`` verdicts are on pairs that the model did not judge: they count for neither side.
    """

    human: GroupedMeans
    model: GroupedMeans
    difference: GroupedMeans
    num_verdicts: int
    num_prompts: int
    num_left_out: int
    num_human_ties: int
    num_model_ties: int


class HumanCeiling(Record, frozen=True, kw_only=True):
    """The agreement by the rule that makes one ranking of the others' verdicts.

    ``resolved``: CHEEMS, Algorithm 1, on all verdicts. ``majority``: the same on the majority verdict of each pair.
    """

    num_annotators: int
    resolved: PeopleAndModel
    majority: PeopleAndModel


class HeldOutVerdicts(NamedTuple):
    """Verdicts of one annotator on pairs that the others' ranking orders into ``better`` and ``worse``; (verdict,).

    ``human`` is 1 for agreement, 0 for a tie, and -1 for disagreement. Responses are positions in their case.
    """

    case: Integers
    better: Integers
    worse: Integers
    human: Integers


def leave_one_out(evidence: JudgmentTable, aggregate: Aggregate) -> HeldOutVerdicts:
    """Return every readable verdict on a pair that the ranking of the other annotators orders."""
    num_judges = len(evidence.judges)
    tiers = tiers_of(edges_of(evidence.verdicts, aggregate), evidence.num_responses)
    graphs = compare_with_tiers(evidence, tiers, aggregate).by_judge
    others = tiers_of_others(graphs, num_judges, aggregate)
    verdicts = graphs.verdicts
    left, right = others[verdicts.graph, verdicts.left], others[verdicts.graph, verdicts.right]
    counts = (left >= 0) & (right >= 0) & (left != right) & (verdicts.verdict != NONE)
    chosen, is_left = verdicts.where(counts), (left < right)[counts]
    better = np.where(is_left, chosen.left, chosen.right)
    agreed = np.where(chosen.better == better, 1, -1)
    return HeldOutVerdicts(
        graphs.owner[chosen.graph] // max(1, num_judges),
        better,
        np.where(is_left, chosen.right, chosen.left),
        np.where(chosen.verdict == TIE, 0, agreed),
    )


def estimate(resampled: ResampledBench) -> HumanCeiling | None:
    """Estimate the agreement of people and model with the rankings of the others; null without two annotators."""
    bench, included = resampled.bench, resampled.included
    if not any(included[index] for index in bench.columns.judged):
        return None
    table = judgment_table(bench.columns.judged_cases(included), Only(kind=("human",)))
    start = bench.columns.start[included]
    outcomes_of = _score_outcomes(bench) if bench.has_scores else _verdict_outcomes(bench)
    return human_ceiling(
        resampled.blocks,
        table,
        lambda held_out: outcomes_of(start[held_out.case] + held_out.better, start[held_out.case] + held_out.worse),
    )


def human_ceiling(
    blocks: Blocks, table: JudgmentTable, outcomes: Callable[[HeldOutVerdicts], Floats]
) -> HumanCeiling | None:
    """Estimate the agreement from the judgments of the blocks' prompts; null without two annotators.

    ``outcomes`` of the model are above 0 if right, 0 for a tie, below 0 if wrong, and NaN for a pair without a value,
    which counts for neither side. A tie is wrong on both sides.
    """
    if len(table.judges) < 2:
        return None
    rules: tuple[Aggregate, ...] = ("none", "majority")
    by_rule = [leave_one_out(table, rule) for rule in rules]
    resolved, majority = (_agreement(blocks, held_out, outcomes(held_out)) for held_out in by_rule)
    if not (resolved.num_verdicts or majority.num_verdicts):
        return None
    return HumanCeiling(num_annotators=len(table.judges), resolved=resolved, majority=majority)


def _agreement(blocks: Blocks, held_out: HeldOutVerdicts, model: Floats) -> PeopleAndModel:
    size, answered = len(blocks.block), ~np.isnan(model)
    case, human, model = held_out.case[answered], held_out.human[answered], model[answered]
    total = np.bincount(case, minlength=size).astype(np.float64)
    people, machine = (np.bincount(case[right > 0], minlength=size).astype(np.float64) for right in (human, model))
    means = grouped_means(
        blocks,
        {
            "human": Ratio(people, total, SHARE),
            "model": Ratio(machine, total, SHARE),
            "difference": Ratio(machine - people, total, is_difference=True),
        },
    )
    num_prompts = int((total > 0).sum())
    fewest = _FEWEST_PROMPTS_PER_CATEGORY * len(means["human"].by_category)
    if num_prompts < fewest:
        macro = means["human"].macro.without_interval(needs_prompts(fewest))
        means["human"] = replace(means["human"], macro=macro)
    return PeopleAndModel(
        **means,
        num_verdicts=int(answered.sum()),
        num_prompts=num_prompts,
        num_left_out=int((~answered).sum()),
        num_human_ties=int((human == 0).sum()),
        num_model_ties=int((model == 0).sum()),
    )


def _score_outcomes(bench: ScoredBench) -> Callable[[Integers, Integers], Floats]:
    """Return the outcomes by scores; a pair without a score is wrong."""
    score = bench.scores.score
    return lambda better, worse: np.nan_to_num(score[better] - score[worse], nan=-1.0)


def _verdict_outcomes(bench: ScoredBench) -> Callable[[Integers, Integers], Floats]:
    """Return the outcomes by verdicts: a missing one is wrong, as in the headline; NaN for a pair never asked."""
    columns, verdicts = bench.columns, dict[tuple[int, int], float]()
    differences = (bench.values.better - bench.values.worse).tolist()
    for better, worse, difference in zip(columns.better.tolist(), columns.worse.tolist(), differences, strict=True):
        has_verdict = not isnan(difference)
        verdicts[better, worse] = difference if has_verdict else -1.0
        verdicts[worse, better] = -difference if has_verdict else -1.0
    return lambda better, worse: np.array(
        [verdicts.get(pair, np.nan) for pair in zip(better.tolist(), worse.tolist(), strict=True)], np.float64
    )


def rows(summary: HumanCeiling) -> Iterator[MeasureRow]:
    """Yield the rows of the table of measures, by rule."""
    for rule, agreement in (("resolved", summary.resolved), ("majority", summary.majority)):
        yield means_row(word(f"people_{rule}"), agreement.human)
        yield means_row(word(f"model_{rule}"), agreement.model)


MEASURE = Measure(order=50, summary=HumanCeiling, estimate=estimate, text=TEXT, rows=rows)
