"""The headline of the bench that evaluations share, as the bench declares it: one rule for every stage that ranks."""

from steelyard.core.plugins import build
from steelyard.evaluation.evaluations import Beside
from steelyard.statistics.bootstrap import Items, Totals, resample
from steelyard.statistics.headline import Headline, mean_accuracy


def headline_of(beside: Beside) -> Headline:
    """The headline by which these evaluations are ranked, or what keeps it away: they hold the same prompts."""
    first = beside.evaluated[0]
    bench = build("benches", first.run.config["bench_kind"], first.run.config["bench"])
    return bench.headline(_totals(beside), beside.left_out)


def ranking_of(beside: Beside) -> Headline:
    """The headline; of a part of a bench, which has none, accuracy on that part, with what is ``missing``."""
    own = headline_of(beside)
    return mean_accuracy(_totals(beside))._replace(missing=own.missing) if own.missing else own


def _totals(beside: Beside) -> Totals:
    return resample(Items(beside.layout, beside.evaluated[0].statistics, num_resamples=0), seed=0)
