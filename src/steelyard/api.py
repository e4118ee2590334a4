"""The Python API: the verbs on values in memory, for notebooks and other programs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from steelyard.core.config import resolve_config
from steelyard.core.plugins import build
from steelyard.core.protocols import RewardModel
from steelyard.core.types import Case, JsonObject, Scores

if TYPE_CHECKING:
    from steelyard.evaluation.summary import EvaluationSummary
    from steelyard.ranking.resolution import Combination


def resolve(cases: Sequence[Case], *, only: Sequence[str] = (), aggregate: "Combination" = "none") -> tuple[Case, ...]:
    """Return the cases with conflict-free rankings (CHEEMS, algorithm 1); ``only=["kind=human"]`` selects judgments.

    ``aggregate`` combines several judgments of one pair: ``none``, ``majority`` or ``dawid-skene``.
    Raises RecordError for an inconsistent case.
    """
    from steelyard.core.checks import check_case
    from steelyard.ranking.judgment_table import Only, parse_only
    from steelyard.ranking.resolution import resolve_cases

    evidence = resolve_config(Only, parse_only(only), where="only")
    return resolve_cases([check_case(case) for case in cases], only=evidence, aggregate=aggregate)[0]


def load_model(model: str, settings: JsonObject | None = None) -> RewardModel:
    """Load a model: the folder of a trained one, or a kind such as ``longer``. Raises ModelError and KindError."""
    from steelyard.plugins.reward_models import build_model, choose_model

    return build_model(choose_model(model, settings))


def score(model: RewardModel, cases: Sequence[Case]) -> tuple[Scores, ...]:
    """Score the cases: one Scores per case, in order."""
    from steelyard.plugins.reward_models import scored

    return tuple(scored(model, cases, name="the model", quietly=True))


def evaluate(
    model: RewardModel,
    cases: Sequence[Case],
    *,
    baselines: Sequence[str] = ("longer", "random"),
    allow_unscored: bool = False,
    seed: int = 0,
) -> "EvaluationSummary":
    """Return the summary of an evaluation, as `steelyard evaluate` writes it.

    Each value is an ``Estimate`` (value, low, high, n) with a 95% interval over prompts, null with ``why`` where it
    has none. A judge (``judged``) compares the pairs themselves.

    Raises EvidenceError if responses have no score, unless ``allow_unscored``.
    """
    from steelyard.core.protocols import JudgeModel
    from steelyard.evaluation.batches import refuse_unscored
    from steelyard.evaluation.columns import bench_columns
    from steelyard.evaluation.config import Config
    from steelyard.evaluation.pair_verdicts import ask, refuse_failed
    from steelyard.evaluation.summary import evaluation_of, summarise

    config = Config(baselines=tuple(baselines), seed=seed)
    baseline_scores = {
        name: score(load_model(name, {"seed": seed} if name == "random" else None), cases) for name in baselines
    }
    bench = build("benches", "cases")
    if isinstance(model, JudgeModel):
        lines, judged = ask(model, cases, bench_columns(cases, config.pairs, config.exact_rule), seed=seed)
        if not allow_unscored:
            refuse_failed(judged)
        return summarise(evaluation_of(cases, lines, bench, config, baselines=baseline_scores, judged=judged))
    evaluation = evaluation_of(cases, score(model, cases), bench, config, baselines=baseline_scores)
    if not allow_unscored:
        refuse_unscored(evaluation.bench_pairs.columns, evaluation.scores)
    return summarise(evaluation)
