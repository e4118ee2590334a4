"""A leaderboard: evaluations of one bench in one table, with possible ranks and columns of values."""

from collections.abc import Mapping, Sequence

from msgspec import UNSET

from steelyard.core.types import Record, Run
from steelyard.evaluation.coverage import Coverage, unequal_coverage
from steelyard.evaluation.evaluations import EvaluationSet, bench_hashes, ceiling_of, has_headline, ranking_of
from steelyard.evaluation.few_labels_compared import rank_labelled
from steelyard.evaluation.measure import BenchCeiling
from steelyard.evaluation.measures.accuracy import GroupResult
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.significance import HeadlineBootstrap, Standings, standings

HALF_POINTS = "half_points"
"""The group of values that count a tie or a failure as half a point."""
_HEADLINES = ("overall", "overall_with_prior_sets", "accuracy", "exact_match")
_MOST_PARTS = 3
_OF_BOTH_LABELS = "; from people's labels of few prompts and a judge's of many"


class NumberColumn(Record, frozen=True, kw_only=True):
    """A column of values: its group (``headline``, ``sections`` …) and its name within the group."""

    group: str
    name: str


class Number(NumberColumn, frozen=True, kw_only=True):
    """A model's value in one column, with its 95% interval and its number of prompts or pairs."""

    value: float | None
    low: float | None
    high: float | None
    n: int


class ShownProtocol(Record, frozen=True, kw_only=True):
    """The settings of a model's protocol in the table; null if one does not apply."""

    dtype: str | None
    max_length: int | None
    over_length: str | None
    template_hash: str | None


class BaselineLead(Record, frozen=True, kw_only=True):
    """The accuracy of a baseline on the same prompts, and the model's accuracy minus it."""

    accuracy: Estimate
    lead: Estimate


class LeaderboardRow(Record, frozen=True, kw_only=True):
    """One model. ``rank_shares``: the share of resamples in which it has each rank, from rank 1.

    Its rank is between ``best_rank`` and ``worst_rank``. Models that share a letter in ``group`` do not differ
    significantly. ``self_test`` is the state of the evaluation's self-test. ``baselines`` are those of the evaluation.
    """

    name: str
    folder: str
    kind: str
    value: float
    best_rank: int
    worst_rank: int
    rank_shares: tuple[float, ...]
    group: str
    self_test: str
    coverage: Coverage | None
    protocol: ShownProtocol
    numbers: tuple[Number, ...]
    baselines: dict[str, BaselineLead] = {}  # noqa: RUF012 - msgspec copies it

    @property
    def by_column(self) -> dict[tuple[str, str], Number]:
        """The values by group and name."""
        return {(number.group, number.name): number for number in self.numbers}

    def share_read(self, name: str) -> float | None:
        """Return the share of responses that were cut (``num_cut``) or not scored (``num_unscored``), if known."""
        return None if self.coverage is None else getattr(self.coverage, name) / max(self.coverage.num_responses, 1)


class RankedPair(Record, frozen=True, kw_only=True):
    """Two models with the corrected p-value of their difference.

    ``p_bounded``: the larger of it and the p-value if pairs that only the worse model has no score for count as right.
    """

    first: str
    second: str
    p_corrected: float
    p_bounded: float


class Unranked(Record, frozen=True, kw_only=True):
    """An evaluation without a headline, and the reason."""

    name: str
    why: str


class LeaderboardSummary(Record, frozen=True, kw_only=True):
    """The summary of a run of ``leaderboard``; ``rows`` are sorted, best model first.

    ``missing``: the parts of the bench that all evaluations lack, which are then ranked by accuracy. ``differing``: the
    facts that differ with permission, their values, and the models with each value. ``unlike_coverage``: the coverage
    of each model, if two of them read different shares of the responses. ``partial``: evaluations that are not ranked.
    ``ceiling``: what a perfect model reaches, where an evaluation states it.
    """

    bench: str
    bench_sha256: tuple[str, ...]
    num_prompts: int
    ranked_by: str
    about: str
    missing: dict[str, str]
    correction: str
    columns: tuple[NumberColumn, ...]
    rows: tuple[LeaderboardRow, ...]
    comparisons: tuple[RankedPair, ...]
    differing: dict[str, dict[str, tuple[str, ...]]]
    unlike_coverage: tuple[str, ...]
    partial: tuple[Unranked, ...]
    ceiling: BenchCeiling | None = None


def rank_models(
    evaluations: EvaluationSet,
    names: Sequence[str],
    *,
    differing: Mapping[str, Mapping[str, Sequence[str]]],
    partial: Mapping[str, str],
    num_resamples: int,
    seed: int,
) -> LeaderboardSummary:
    """Rank evaluations by the headline of their bench. ``partial``: the reason for each evaluation without a rank."""
    headline = ranking_of(evaluations)
    runs = [model.run for model in evaluations.evaluated]
    folders = [model.folder for model in evaluations.evaluated]
    labelled = rank_labelled(folders, runs, num_resamples=num_resamples, seed=seed)
    ranks = labelled or standings(
        HeadlineBootstrap(evaluations.layout, headline.formula, num_resamples, seed),
        [model.statistics for model in evaluations.evaluated],
        [model.unscored for model in evaluations.evaluated],
    )
    rows = [_row(evaluations, ranks, index, name) for index, name in enumerate(names)]
    coverage = {name: run.summary.coverage for name, run in zip(names, runs, strict=True)}
    columns = dict.fromkeys(
        key for run in runs for key, estimate in columns_of(run.summary).items() if estimate.value is not None
    )
    if not any(
        run.summary.outcomes is not None or run.summary.unscored is not None or run.summary.tied.num_pairs > 0
        for run in runs
    ):
        # Without a tie or a failure anywhere these columns would repeat the strict ones.
        columns = [(group, name) for group, name in columns if group != HALF_POINTS]
    return LeaderboardSummary(
        bench=runs[0].summary.bench,
        bench_sha256=tuple(bench_hashes(runs[0])),
        num_prompts=len(evaluations.evaluated[0].statistics),
        ranked_by=headline.name,
        about=headline.about if labelled is None else f"{headline.about}{_OF_BOTH_LABELS}",
        missing=dict(headline.missing),
        correction="Holm, over all pairs of models",
        columns=tuple(NumberColumn(group=group, name=name) for group, name in columns),
        rows=tuple(sorted(rows, key=lambda row: -row.value)),
        comparisons=tuple(
            RankedPair(
                first=names[first], second=names[second], p_corrected=p, p_bounded=ranks.p_bounded[first, second]
            )
            for (first, second), p in ranks.p_corrected.items()
        ),
        differing={
            fact: {value: tuple(models) for value, models in values.items()} for fact, values in differing.items()
        },
        unlike_coverage=tuple(unequal_coverage(coverage)),
        partial=tuple(Unranked(name=name, why=why) for name, why in partial.items()),
        ceiling=ceiling_of(evaluations),
    )


def what_lacks(run: Run[EvaluationSummary]) -> str | None:
    """Return the reason why the evaluation has no headline, or null if it has one."""
    if not has_headline(run):
        return "most pairs have no score or verdict"
    if run.summary.headline is UNSET:
        return "evaluated by an earlier version; evaluate it again"
    parts = [f"{name} ({why})" for name, why in (run.summary.missing or {}).items()]
    more = f" and {len(parts) - _MOST_PARTS} more" if len(parts) > _MOST_PARTS else ""
    return ", ".join(parts[:_MOST_PARTS]) + more or None


def is_part(run: Run[EvaluationSummary]) -> bool:
    """Return whether the evaluation lacks a headline only because parts of the bench are missing."""
    return has_headline(run) and run.summary.headline is not UNSET and bool(run.summary.missing)


def _row(evaluations: EvaluationSet, ranks: Standings, index: int, name: str) -> LeaderboardRow:
    evaluated = evaluations.evaluated[index]
    summary = evaluated.run.summary
    protocol = summary.protocol or {}
    best, worst = ranks.ranks[index]
    of_both = {} if summary.prediction_powered is None else summary.prediction_powered.baselines
    return LeaderboardRow(
        name=name,
        folder=str(evaluated.folder),
        kind=evaluated.run.config.get("model_kind") or "scores",
        value=float(ranks.value[index]),
        best_rank=best,
        worst_rank=worst,
        rank_shares=tuple(ranks.rank_shares[index].tolist()),
        group=ranks.groups[index],
        self_test=summary.self_test_state,
        coverage=summary.coverage,
        protocol=ShownProtocol(**{key: protocol.get(key) for key in ShownProtocol.__struct_fields__}),
        numbers=tuple(
            Number(group=group, name=title, value=estimate.value, low=estimate.low, high=estimate.high, n=estimate.n)
            for (group, title), estimate in columns_of(summary).items()
        ),
        baselines={
            name: BaselineLead(
                accuracy=baseline.accuracy, lead=of_both[name].estimate if name in of_both else baseline.difference
            )
            for name, baseline in summary.baselines.items()
        },
    )


Columns = dict[tuple[str, str], Estimate]


def columns_of(summary: EvaluationSummary) -> Columns:
    """Return the estimates by (group, name); the group of a headline is ``headline``.

    A group with a single name repeats the headline and is omitted. ``languages`` replaces ``by_language`` if both are
    present. Categories within subsets (CheemsBench) replace ``by_category``, which pools them over subsets.
    """
    headlines = {("headline", name): getattr(summary, name) for name in _HEADLINES}
    powered = summary.prediction_powered
    if powered is not None:
        # Its values stand for those from the human labels alone, as on its own page.
        both = {"accuracy": powered.accuracy, "exact_match": powered.exact_match} | powered.headline
        headlines |= {("headline", name): value.estimate for name, value in both.items()}
    columns: Columns = {key: estimate for key, estimate in headlines.items() if estimate is not None}
    columns |= _group("sections", summary.sections or {})
    subsets = summary.subsets or {}
    categories = {
        ("subset_categories", f"{name}: {category}"): group.accuracy
        for name, subset in subsets.items()
        for category, group in (subset.by_category or {}).items()
    }
    if len(subsets) > 1:
        columns |= _group("subsets", _accuracies(subsets)) | _exact_matches(subsets) | categories
    if not categories:
        of_both = {} if powered is None else {name: each.estimate for name, each in powered.by_category.items()}
        columns |= _group("by_category", of_both or _accuracies(summary.by_category))
    if summary.languages is None:
        of_both = {} if powered is None else {name: each.estimate for name, each in powered.by_language.items()}
        columns |= _group("by_language", of_both or _accuracies(summary.by_language or {}))
    else:
        overall = {name: language.overall for name, language in summary.languages.items()}
        columns |= _group("languages", {name: value for name, value in overall.items() if value is not None})
    return columns | _half_points(summary)


def _group(group: str, estimates: Mapping[str, Estimate]) -> Columns:
    return {(group, name): estimate for name, estimate in estimates.items()} if len(estimates) > 1 else {}


def _accuracies(groups: Mapping[str, GroupResult[Estimate]]) -> dict[str, Estimate]:
    return {name: group.accuracy for name, group in groups.items()}


def _exact_matches(subsets: Mapping[str, GroupResult[Estimate]]) -> Columns:
    """Return exact match of each subset; none if every prompt has one pair, since it would equal accuracy."""
    if all(subset.exact_match is None or subset.exact_match.n == subset.accuracy.n for subset in subsets.values()):
        return {}
    return {
        ("subsets_exact_match", name): subset.exact_match
        for name, subset in subsets.items()
        if subset.exact_match is not None
    }


def _half_points(summary: EvaluationSummary) -> Columns:
    """Return the values with half a point for a tie or a failure, on benches whose published scores count so."""
    half = (summary.policies or {}).get("half")
    if half is None or not half.headline:
        return {}
    values = {half.headline: getattr(half, half.headline), **(half.sections or {})}
    return {(HALF_POINTS, name): estimate for name, estimate in values.items()}
