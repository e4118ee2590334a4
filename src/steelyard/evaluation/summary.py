"""`EvaluationSummary`: the summary of an evaluation in ``run.json``, which every reader of an evaluation decodes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from steelyard.core.types import InputFinding, Meta, Record
from steelyard.curation.input_checks import below_chance
from steelyard.evaluation.coverage import Coverage
from steelyard.evaluation.evaluated_bench import MissingScores
from steelyard.evaluation.measure import Measure, measures
from steelyard.evaluation.measures.accuracy import Accuracy, BenchAccuracy, HeadlineSummary, Range
from steelyard.evaluation.model_self_tests import SelfTestSummary
from steelyard.evaluation.pair_verdicts import PairOutcomes
from steelyard.evaluation.prediction_powered import PPISummary
from steelyard.evaluation.tie_policies import CategoryWeights, Policies
from steelyard.judging.verdicts import VerdictSummary
from steelyard.ranking.pairs import PairChoice
from steelyard.statistics.intervals import Estimate

if TYPE_CHECKING:

    class MeasureSummaries(Record, frozen=True, kw_only=True):
        """The summary of each measure by name; null if it does not apply to the model or the bench."""
else:
    MeasureSummaries = msgspec.defstruct(
        "MeasureSummaries",
        [(name, measure.summary | None, None) for name, measure in measures().items()],
        bases=(Record,),
        frozen=True,
        kw_only=True,
    )


class TiedPairs(Record, frozen=True, kw_only=True):
    """Pairs whose two scores are equal, and their share of all pairs."""

    num_pairs: int
    share: float


class EvaluationSummary(HeadlineSummary, frozen=True, kw_only=True):
    """The summary of an evaluation.

    ``bench``, ``model``, ``protocol`` and ``self_test`` are absent from an evaluation in memory. A reward model has
    ``coverage``, and if scores are missing ``unscored``, ``bounds`` (unscored pairs wrong, and right) and
    ``over_scored_pairs``. ``num_left_out`` counts the pairs of equal texts, which no model can win and no value counts.
    A judge has ``outcomes`` and ``judges``. ``prediction_powered``: with human labels of few and a judge's of many
    prompts, the values from both; all others are from the human labels alone.
    """

    bench: str = ""
    model: str = ""
    protocol: Meta | UnsetType | None = UNSET
    self_test: SelfTestSummary | None = None
    metric: str
    pairs: PairChoice | None
    tied: TiedPairs
    num_left_out: int = 0
    coverage: Coverage | None = None
    outcomes: PairOutcomes | None = None
    judges: dict[str, VerdictSummary] | None = None
    unscored: MissingScores | None = None
    bounds: BenchAccuracy[Range] | None = None
    over_scored_pairs: Accuracy[Estimate] | None = None
    policies: Policies | None = None
    weights: CategoryWeights
    measures: MeasureSummaries
    prediction_powered: PPISummary | None = None

    @property
    def self_test_state(self) -> str:
        """The state of the model's self-tests; ``off`` if none is recorded."""
        return "off" if self.self_test is None else self.self_test.state

    def measured(self) -> Iterator[tuple[Measure[Any], Any]]:
        """Yield every measure that applied, with its summary."""
        for name, measure in measures().items():
            summary = getattr(self.measures, name)
            if summary is not None:
                yield measure, summary


def reversed_scores(summary: EvaluationSummary, model: str) -> tuple[InputFinding, ...]:
    """Return a finding if the scores are far below chance. The verdicts of a judge have no direction to reverse."""
    if summary.outcomes is not None:
        return ()
    num_open = summary.tied.num_pairs + (summary.unscored.num_pairs if summary.unscored else 0)
    accuracy = summary.accuracy_micro
    num_right = round((accuracy.value or 0) * accuracy.n)
    return below_chance(accuracy, accuracy.n - num_right - num_open, model=model)
