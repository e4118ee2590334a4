"""The headline of the bench that evaluations share, as the bench declares it: one rule for every stage that ranks."""

from steelyard.core.plugins import build
from steelyard.files.evaluations import Beside
from steelyard.methods.measures.headlines import Headline
from steelyard.methods.measures.resampling import Items, resample


def headline_of(beside: Beside) -> Headline:
    """The headline by which these evaluations are ranked, or what keeps it away: they hold the same prompts."""
    first = beside.evaluated[0]
    bench = build("benches", first.run.config["bench_kind"], first.run.config["bench"])
    return bench.headline(resample(Items(beside.layout, first.statistics, num_resamples=0), seed=0))
