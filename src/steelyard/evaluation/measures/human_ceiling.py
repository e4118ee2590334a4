"""The human ceiling: each annotator against the ranking of all others, and the model on exactly the same pairs.

No model can be asked to agree with people more than people agree with each other. An annotator's verdict on a pair that
the others' ranking orders is right, wrong or a tie, by the rule of accuracy; so are the model's two scores on that
pair, against that same ranking.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.core.arrays import Floats, Integers
from steelyard.core.types import Case
from steelyard.ranking.conflicts import compare_with_tiers
from steelyard.ranking.judgment_table import NONE, TIE, Aggregate, JudgmentTable, Only, edges_of, judgment_table
from steelyard.ranking.leave_one_out import tiers_of_others
from steelyard.ranking.tiers import tiers_of
from steelyard.statistics.bootstrap import Blocks
from steelyard.statistics.intervals import SHARE
from steelyard.statistics.prompt_means import Ratio, summarise

RULES: dict[str, Aggregate] = {"resolved": "none", "majority": "majority"}
"""How the others make one ranking: CHEEMS, algorithm 1, on all their verdicts, or on the majority of each pair's."""


_FEWEST_PROMPTS_PER_CATEGORY = 6
"""Below it the interval of people's mean over categories is too short: it covers the truth in 77 % at two prompts."""


class HeldOut(NamedTuple):
    """Verdicts of one annotator on pairs that the others order; ``better`` and ``worse`` are theirs; shape (verdict,).

    ``human`` is 1 where the annotator agrees, 0 for a tie, and -1 where not. Integers are those in the case.
    """

    case: Integers
    better: Integers
    worse: Integers
    human: Integers


def leave_one_out(evidence: JudgmentTable, aggregate: Aggregate) -> HeldOut:
    """Every verdict that was read, of annotators who are not alone, on a pair that the others' ranking orders."""
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
    return HeldOut(
        graphs.owner[chosen.graph] // max(1, num_judges),
        better,
        np.where(is_left, chosen.right, chosen.left),
        np.where(chosen.verdict == TIE, 0, agreed),
    )


def human_ceiling(
    cases: Sequence[Case], blocks: Blocks, outcomes: Callable[[HeldOut], Floats]
) -> dict[str, Any] | None:
    """Agreement of people with the others' rankings, that of the model, and the model's minus the people's; by rule.

    ``cases`` are the prompts of the blocks. ``outcomes`` says what the model makes of pairs: above 0 right, 0 a tie,
    below 0 wrong, NaN nothing: such pairs count for neither, and are in ``num_left_out``. A tie is wrong, on both
    sides. Null where no case has two annotators.
    """
    evidence = judgment_table(cases, Only(kind=("human",)))
    if len(evidence.judges) < 2:
        return None
    found = {name: _report(blocks, leave_one_out(evidence, rule), outcomes) for name, rule in RULES.items()}
    if not any(own["num_verdicts"] for own in found.values()):
        return None
    return {"num_annotators": len(evidence.judges), **found}


def _report(blocks: Blocks, held_out: HeldOut, outcomes: Callable[[HeldOut], Floats]) -> dict[str, Any]:
    size = len(blocks.block)
    model = outcomes(held_out)
    answered = ~np.isnan(model)
    case = held_out.case[answered]
    human, own = held_out.human[answered] > 0, model[answered] > 0
    below = np.bincount(case, minlength=size).astype(np.float64)
    people, machine = (np.bincount(case[right], minlength=size).astype(np.float64) for right in (human, own))
    measured = {
        "human": Ratio(people, below, SHARE),
        "model": Ratio(machine, below, SHARE),
        "difference": Ratio(machine - people, below, is_difference=True),
    }
    counts = {"num_verdicts": int(answered.sum()), "num_prompts": int((below > 0).sum())}
    counts["num_left_out"] = int((~answered).sum())
    ties = {"num_human_ties": int((held_out.human[answered] == 0).sum())}
    report = summarise(blocks, measured)
    fewest = _FEWEST_PROMPTS_PER_CATEGORY * len(report["human"]["by_category"])
    if counts["num_prompts"] < fewest:
        report["human"]["macro"] |= {"low": None, "high": None, "why": f"an interval needs {fewest} prompts"}
    return {**report, **counts, **ties, "num_model_ties": int((model[answered] == 0).sum())}
