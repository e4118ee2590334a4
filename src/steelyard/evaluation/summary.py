"""The summary of an evaluation: headline, bench, baselines, ties, and bounds where scores are missing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.core.arrays import Floats, Integers
from steelyard.core.types import Case, Scores
from steelyard.evaluation.columns import BenchColumns, ScoreColumns, score_columns
from steelyard.evaluation.config import Config
from steelyard.evaluation.measure import Measurable, measure
from steelyard.evaluation.measures.coverage import CoverageCounter
from steelyard.evaluation.measures.policies import category_weights, half_points, tie_policies
from steelyard.evaluation.pair_verdicts import MOST_UNREAD, Judged, outcome_report, pair_columns
from steelyard.evaluation.questions import (
    PairValues,
    Questions,
    answers,
    items_of,
    questions_of,
    values_of,
)
from steelyard.statistics.aggregation import ACCURACY, means
from steelyard.statistics.bootstrap import resample
from steelyard.statistics.pair_counts import PromptStatistics, count_unscored, with_policy
from steelyard.statistics.significance import NUM_RESAMPLES, share_difference


class HeadlineColumns(NamedTuple):
    """What the bench's headline needs of each case beyond accuracy and exact match: shape (case, column) each.

    What has no score or verdict counts as wrong in the first, and as right in the second.
    """

    unscored_wrong: Integers
    unscored_right: Integers


class Evaluation(NamedTuple):
    """What is summarised: the questions, the bench and settings, the scores of the model and of each baseline.

    ``judged`` is what became of the pairs where the model was asked about them, null where it gave scores.
    """

    questions: Questions
    bench: Any
    config: Config
    scores: ScoreColumns
    headline: HeadlineColumns
    baselines: Mapping[str, Floats]
    """The score of every response; shape (response,) each."""
    judged: Judged | None = None

    @property
    def values(self) -> PairValues:
        """What the model makes of each pair's two responses."""
        return values_of(self.questions.columns, self.scores.score) if self.judged is None else self.judged.values


def evaluation_of(
    cases: Sequence[Case],
    lines: Sequence[Scores],
    bench: Any,
    config: Config,
    *,
    baselines: Mapping[str, Sequence[Scores]] | None = None,
    judged: Judged | None = None,
) -> Evaluation:
    """Return the evaluation of cases in memory. Raises EvidenceError where there is no comparable pair at all."""
    questions = questions_of(cases, config.pairs, config.exact_rule, bench.resample_ids)
    headline = headline_columns(bench, cases, lines, questions.columns, judged)
    others = {name: score_columns(own).score for name, own in (baselines or {}).items()}
    return Evaluation(questions, bench, config, score_columns(lines), headline, others, judged)


def headline_columns(
    bench: Any, cases: Sequence[Case], lines: Sequence[Scores], columns: BenchColumns, judged: Judged | None = None
) -> HeadlineColumns:
    """Return the bench's own columns of a batch of cases."""
    if judged is not None and judged.by_pair:
        own = [pair_columns(bench, cases, columns, judged, open_is_right=is_right) for is_right in (False, True)]
    else:
        own = [bench.columns(cases, lines, unscored_is_right=is_right) for is_right in (False, True)]
    return HeadlineColumns(*own)


def summarise(given: Evaluation) -> dict[str, Any]:
    """The whole summary but for the names of model and bench."""
    values = given.values
    found = answers(given.questions.columns, values)
    # What has no score or verdict counts as wrong, beside bounds; too much of it leaves no headline all the same.
    unscored = given.judged is None and bool(given.scores.reasons)
    withheld = is_withheld(found) if given.judged is None else given.judged.is_withheld
    summary: dict[str, Any] = {"metric": given.config.metric_compat or "steelyard", "pairs": given.config.pairs}
    counted = count_unscored(found, "wrong")
    measured = _measured(given, counted, unscored_is_right=False)
    summary |= _withheld(measured) if withheld else measured
    num_pairs = int(found.num_pairs.sum())
    num_tied = int(found.num_tied.sum())
    summary["tied"] = {"num_pairs": num_tied, "share": num_tied / num_pairs}
    if given.judged is None:
        summary["coverage"] = coverage_counter(given.questions.columns, given.scores).report()
    if given.judged is not None:
        summary |= _policies(given, found, given.judged)
    elif unscored:
        summary |= _with_bounds(given, found)
        if given.bench.counts_halves and not withheld:
            summary["policies"] = {"half": half_points(given.questions, found, given.config, given.bench)}
    else:
        summary["policies"] = tie_policies(given.questions, found, measured, given.config, given.bench)
    summary["weights"] = category_weights(given.questions, found)
    summary["baselines"] = {
        name: _baseline(given, counted, score, withheld=withheld) for name, score in given.baselines.items()
    }
    return summary | {"measures": _measures(given, values, measured)}


def is_withheld(found: PromptStatistics) -> bool:
    """Whether so many pairs have no score that a headline would tell of their number."""
    return int(found.num_unscored.sum()) > MOST_UNREAD * int(found.num_pairs.sum())


def _measures(given: Evaluation, values: PairValues, measured: dict[str, Any]) -> dict[str, Any]:
    judged = given.judged
    measurable = Measurable(
        given.questions,
        given.scores,
        values,
        has_scores=judged is None or not judged.by_pair,
        has_rewards=judged is None,
        matched_ratio=given.config.matched_ratio,
    )
    found = measure(measurable, num_resamples=given.config.num_resamples, seed=given.config.seed)
    if "length" in found:
        found["length"]["raw"] = {
            # The headline itself, so that one number has one interval.
            "macro": measured["accuracy"],
            "micro": measured["accuracy_micro"],
            **{
                group: {name: own["accuracy"] for name, own in measured[group].items()}
                for group in ("by_category", "by_language")
            },
        }
    return found


def unscored_report(columns: BenchColumns, scores: ScoreColumns) -> dict[str, Any]:
    """Return how many responses have no score, by reason and by language."""
    case_of = columns.case_of
    languages = Counter(columns.cells[case_of[response]].language or "unknown" for response in scores.reasons)
    counts = answers(columns, values_of(columns, scores.score))
    return {
        "num_responses": len(scores.reasons),
        "by_reason": dict(sorted(Counter(scores.reasons.values()).items())),
        "by_language": dict(sorted(languages.items())),
        "num_pairs": int(counts.num_unscored.sum()),
        "num_prompts": int((counts.num_unscored > 0).sum()),
    }


def coverage_counter(columns: BenchColumns, scores: ScoreColumns) -> CoverageCounter:
    """Return how many responses of each language were read whole, cut, or not scored."""
    languages = [cell.language for cell in columns.cells]
    names = sorted(set(languages), key=str)
    language = np.array([names.index(own) for own in languages], np.int64)[columns.case_of]
    chosen = (np.arange(len(language)), scores.cut, np.array(list(scores.reasons), np.int64))
    counts = [np.bincount(language[own], minlength=len(names)).tolist() for own in chosen]
    counter = CoverageCounter()
    for name, *own in zip(names, *counts, strict=True):
        counter.count(name, *own)
    return counter


def _measured(
    given: Evaluation, statistics: PromptStatistics, *, unscored_is_right: bool, num_resamples: int | None = None
) -> dict[str, Any]:
    """Headline and the bench's own part."""
    resamples = given.config.num_resamples if num_resamples is None else num_resamples
    columns = given.headline.unscored_right if unscored_is_right else given.headline.unscored_wrong
    items = items_of(given.questions, statistics, num_resamples=resamples, columns=columns)
    totals = resample(items, seed=given.config.seed)
    return means(totals) | given.bench.summarise(totals, given.questions.left_out)


def _policies(given: Evaluation, found: PromptStatistics, judged: Judged) -> dict[str, Any]:
    """The outcomes of a model that was asked, and its measures with ties and missing verdicts wrong, half and right."""
    wrong, right = (
        _measured(given, with_policy(found, policy), unscored_is_right=policy == "right")
        for policy in ("wrong", "right")
    )
    half = half_points(given.questions, found, given.config, given.bench)
    return {
        "outcomes": outcome_report(given.questions.columns, judged),
        "judges": judged.judges,
        "policies": {"wrong": wrong, "half": half, "right": right},
    }


def _with_bounds(given: Evaluation, found: PromptStatistics) -> dict[str, Any]:
    low, high = (
        _measured(given, count_unscored(found, how), unscored_is_right=how == "right", num_resamples=0)
        for how in ("wrong", "right")
    )
    scored = items_of(given.questions, count_unscored(found, "left_out"), num_resamples=given.config.num_resamples)
    over_scored = means(resample(scored, seed=given.config.seed))
    return {
        "unscored": unscored_report(given.questions.columns, given.scores),
        "bounds": _bounds(low, high),
        "over_scored_pairs": {
            "accuracy": over_scored["accuracy"],
            "accuracy_micro": over_scored["accuracy_micro"],
            "by_category": {name: {"accuracy": own["accuracy"]} for name, own in over_scored["by_category"].items()},
        },
    }


def _baseline(given: Evaluation, model: PromptStatistics, score: Floats, *, withheld: bool) -> dict[str, Any]:
    own = answers(given.questions.columns, values_of(given.questions.columns, score))
    seed, num_resamples = given.config.seed, given.config.num_resamples
    measured = means(resample(items_of(given.questions, own, num_resamples=num_resamples), seed=seed))
    del measured["by_language"]
    both = items_of(given.questions, model, own, num_resamples=NUM_RESAMPLES)
    difference = share_difference(both, ACCURACY, seed=seed).estimate
    return measured | {"difference": (difference.withheld() if withheld else difference).record()}


def _withheld(tree: dict[str, Any]) -> dict[str, Any]:
    """The same summary without numbers: with most pairs unscored there is no headline, only bounds."""
    if "value" in tree:
        return tree | {"value": None, "low": None, "high": None}
    return {name: _withheld(inner) if isinstance(inner, dict) else inner for name, inner in tree.items()}


def _bounds(low: dict[str, Any], high: dict[str, Any]) -> dict[str, Any]:
    """Each value's bounds: unscored pairs counted as wrong, and as right."""
    if "value" in low:
        return {"low": low["value"], "high": high["value"]}
    return {name: _bounds(inner, high[name]) for name, inner in low.items() if isinstance(inner, dict)}
