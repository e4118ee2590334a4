"""The summary of an evaluation: headline, bench, baselines, ties, and bounds where scores are missing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.core.types import Scores
from steelyard.methods.measures.accuracy import NUM_COLUMNS, PromptStatistics, count_unscored
from steelyard.methods.measures.aggregation import accuracy_difference, headline
from steelyard.methods.measures.resampling import resample
from steelyard.stages.evaluate.questions import Questions, answers, items_of
from steelyard.stages.evaluate.settings import Config


class Evaluation(NamedTuple):
    """What is summarised: the questions, the bench and settings, the model's lines and those of each baseline."""

    questions: Questions
    bench: Any
    config: Config
    lines: Sequence[Scores]
    baselines: Mapping[str, Sequence[Scores]]


def summarise(given: Evaluation) -> dict[str, Any]:
    """The whole summary but for the names of model and bench."""
    found = answers(given.questions, given.lines)
    unscored = any(line.unscored for line in given.lines)
    summary: dict[str, Any] = {"metric": given.config.metric_compat or "steelyard", "pairs": given.config.pairs}
    counted = count_unscored(found, "wrong")
    measured = _measured(given, counted, unscored_is_right=False)
    summary |= _withheld(measured) if unscored else measured
    num_pairs = int(found.num_pairs.sum())
    num_tied = int(found.num_tied.sum())
    summary["tied"] = {"num_pairs": num_tied, "share": num_tied / num_pairs}
    if unscored:
        summary |= _with_bounds(given, found)
    summary["baselines"] = {
        name: _baseline(given, counted, lines, withheld=unscored) for name, lines in given.baselines.items()
    }
    return summary


def unscored_report(questions: Questions, lines: Sequence[Scores]) -> dict[str, Any]:
    """How many responses have no score, by reason and by language."""
    reasons, languages = Counter[str](), Counter[str]()
    for case, line in zip(questions.cases, lines, strict=True):
        reasons.update(line.unscored.values())
        languages[case.prompt.language or "unknown"] += len(line.unscored)
    found = answers(questions, lines)
    return {
        "num_responses": reasons.total(),
        "by_reason": dict(sorted(reasons.items())),
        "by_language": {name: number for name, number in sorted(languages.items()) if number},
        "num_pairs": int(found.num_unscored.sum()),
        "num_prompts": int((found.num_unscored > 0).sum()),
    }


def _measured(
    given: Evaluation, statistics: PromptStatistics, *, unscored_is_right: bool, num_resamples: int | None = None
) -> dict[str, Any]:
    """Headline and the bench's own part."""
    resamples = given.config.num_resamples if num_resamples is None else num_resamples
    columns = given.bench.columns(given.questions.cases, given.lines, unscored_is_right=unscored_is_right)
    items = items_of(given.questions, statistics, num_resamples=resamples, columns=columns)
    seed = given.config.seed
    return headline(resample(items, seed=seed)) | given.bench.summarise(items, seed=seed)


def _with_bounds(given: Evaluation, found: PromptStatistics) -> dict[str, Any]:
    low, high = (
        _measured(given, count_unscored(found, how), unscored_is_right=how == "right", num_resamples=0)
        for how in ("wrong", "right")
    )
    scored = items_of(given.questions, count_unscored(found, "left_out"), num_resamples=given.config.num_resamples)
    over_scored = headline(resample(scored, seed=given.config.seed))
    return {
        "unscored": unscored_report(given.questions, given.lines),
        "bounds": _bounds(low, high),
        "over_scored_pairs": {
            "accuracy": over_scored["accuracy"],
            "accuracy_micro": over_scored["accuracy_micro"],
            "by_category": {name: {"accuracy": own["accuracy"]} for name, own in over_scored["by_category"].items()},
        },
    }


def _baseline(given: Evaluation, model: PromptStatistics, lines: Sequence[Scores], *, withheld: bool) -> dict[str, Any]:
    own = answers(given.questions, lines)
    seed, num_resamples = given.config.seed, given.config.num_resamples
    measured = headline(resample(items_of(given.questions, own, num_resamples=num_resamples), seed=seed))
    del measured["by_language"]
    both = items_of(given.questions, model, own, num_resamples=num_resamples)
    difference = accuracy_difference(resample(both, seed=seed), NUM_COLUMNS)
    return measured | {"difference": (difference.withheld() if withheld else difference).record()}


def _withheld(tree: dict[str, Any]) -> dict[str, Any]:
    """The same summary without numbers: with unscored responses there is no headline, only bounds."""
    if "value" in tree:
        return tree | {"value": None, "low": None, "high": None}
    return {name: _withheld(inner) if isinstance(inner, dict) else inner for name, inner in tree.items()}


def _bounds(low: dict[str, Any], high: dict[str, Any]) -> dict[str, Any]:
    """Each value's bounds: unscored pairs counted as wrong, and as right."""
    if "value" in low:
        return {"low": low["value"], "high": high["value"]}
    return {name: _bounds(inner, high[name]) for name, inner in low.items() if isinstance(inner, dict)}
